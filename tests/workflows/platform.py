"""A folder plays the platform: it runs the jobs of a workflow file, step by step, as they stand.

What a step runs is run by a shell, in a checkout of its own for each job. The actions that the
workflows use are played: checkouts come from a repository in the folder, artifacts and the page
are folders, the issues are a file behind a command `gh`. Jobs that install nothing get a Python
without any package, so that what they run needs none.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ruamel.yaml import YAML

from tests.workflows.expressions import condition, fill

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS = ROOT / ".github" / "workflows"
SHIPPED = ("checks", "matrix", "reports")
INSTALL = "uv pip install --group harness"
TOKEN = "of-this-job-alone"


def read_workflow(name: str) -> dict[str, Any]:
    """A workflow file as data."""
    content: dict[str, Any] = YAML(typ="safe").load(WORKFLOWS / name)
    return content


@dataclass(slots=True)
class Job:
    """What a job did.

    Attributes:
        result: success, failure or skipped.
        outputs: Its outputs.
        summary: What its steps wrote to the summary.
        log: What its steps printed.
    """

    result: str = "success"
    outputs: dict[str, str] = field(default_factory=dict)
    summary: str = ""
    log: str = ""


@dataclass(slots=True)
class Execution:
    """A run of a workflow: its jobs, by name, and the artifacts that they handed over."""

    number: int
    artifacts: Path
    jobs: dict[str, Job] = field(default_factory=dict)
    context: dict[str, Any] = field(default_factory=dict)

    @property
    def results(self) -> dict[str, str]:
        """Job -> result, as the gate is told; of several jobs of one matrix the worst."""
        return {name: job.result for name, job in self.jobs.items()}

    @property
    def log(self) -> str:
        """Everything printed."""
        return "\n".join(f"== {name}: {job.result}\n{job.log}" for name, job in self.jobs.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class Platform:
    """The platform, in a folder.

    Attributes:
        folder: Where all of it is.
        runtimes: A work folder whose runtimes are shared, since torch is large.
        environ: Environment that every step has beside the workflow's own.
    """

    folder: Path
    runtimes: Path
    environ: Mapping[str, str]

    def __post_init__(self) -> None:
        source = self.folder / "source"
        for name in SHIPPED:
            ignore = shutil.ignore_patterns("__pycache__", "site", "ledger", "*.png")
            shutil.copytree(ROOT / name, source / name, ignore=ignore)
        for name in ("pyproject.toml", ".gitignore"):
            shutil.copyfile(ROOT / name, source / name)
        for command in (
            ("init", "--quiet", "--initial-branch=main"),
            ("add", "."),
            ("-c", "user.name=t", "-c", "user.email=t@t", "commit", "--quiet", "-m", "The harness"),
            ("clone", "--quiet", "--bare", ".", str(self.repository)),
        ):
            subprocess.run(["git", *command], cwd=source, check=True)
        self._command(
            "gh", f"#!{sys.executable} -IS\n{(Path(__file__).parent / 'gh.py').read_text()}"
        )
        (self.folder / "bare").mkdir()
        for name in ("python", "python3"):
            shim = f'#!/bin/sh\nexec "{sys.executable}" -S "$@"\n'
            self._write(self.folder / "bare" / name, shim)

    @property
    def repository(self) -> Path:
        """The repository, bare."""
        return self.folder / "repository.git"

    @property
    def page(self) -> Path:
        """What is published."""
        return self.folder / "page"

    @property
    def issues(self) -> list[dict[str, Any]]:
        """The issues, by number."""
        path = self.folder / "issues.json"
        state: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {"issues": []}
        found: list[dict[str, Any]] = state["issues"]
        return found

    def _command(self, name: str, content: str) -> None:
        self._write(self.folder / "bin" / name, content)

    def _write(self, path: Path, content: str) -> None:
        path.parent.mkdir(exist_ok=True)
        path.write_text(content, encoding="utf-8")
        path.chmod(0o755)

    def run(
        self,
        name: str,
        *,
        event: str = "schedule",
        inputs: Mapping[str, str] | None = None,
        variables: Mapping[str, str] | None = None,
        lose: frozenset[str] = frozenset(),
    ) -> Execution:
        """Run a workflow; `lose` names jobs of a matrix whose machines get lost."""
        number = 1 + sum(1 for _ in (self.folder / "runs").glob("*"))
        artifacts = self.folder / "runs" / str(number) / "artifacts"
        artifacts.mkdir(parents=True)
        execution = Execution(number=number, artifacts=artifacts)
        execution.context = {
            "github": {
                "event_name": event,
                "event": {"repository": {"default_branch": "main"}},
                "ref_name": "main",
                "ref": "refs/heads/main",
                "repository": "Somebody/longrope",
                "token": TOKEN,
            },
            "inputs": dict(inputs or {}),
            "vars": dict(variables or {}),
        }
        workflow = read_workflow(name)
        for job in workflow["jobs"]:
            execution.jobs[job] = self._job(workflow, job, execution, lose)
        return execution

    def rerun(self, name: str, execution: Execution, job: str) -> Job:
        """Run one job of a run again, on the artifacts of that run."""
        execution.jobs[job] = self._job(read_workflow(name), job, execution, frozenset())
        return execution.jobs[job]

    def _job(
        self, workflow: dict[str, Any], name: str, execution: Execution, lose: frozenset[str]
    ) -> Job:
        job = workflow["jobs"][name]
        needs = [job["needs"]] if isinstance(job.get("needs"), str) else job.get("needs", [])
        done = {one: execution.jobs[one] for one in needs}
        context = {
            **execution.context,
            "needs": {
                one: {"result": it.result, "outputs": it.outputs} for one, it in done.items()
            },
        }
        text = job.get("if", "")
        if "cancelled()" not in text and any(it.result != "success" for it in done.values()):
            return Job(result="skipped")
        if text and not condition(text, context):
            return Job(result="skipped")
        entries = _entries(job, context)
        whole = Job()
        for entry in entries:
            one = self._steps(workflow, job, execution, {**context, "matrix": entry}, lose)
            whole.log += one.log
            whole.summary += one.summary
            whole.outputs |= one.outputs
            if one.result != "success":
                whole.result = one.result
        return whole

    def _steps(
        self,
        workflow: dict[str, Any],
        job: dict[str, Any],
        execution: Execution,
        context: dict[str, Any],
        lose: frozenset[str],
    ) -> Job:
        place = self.folder / "runs" / str(execution.number) / "jobs"
        place = place / str(1 + sum(1 for _ in place.glob("*")))
        workspace = place / "workspace"
        workspace.mkdir(parents=True)
        done = Job()
        context = {**context, "steps": {}}
        lost = context["matrix"].get("job", {}).get("id") in lose
        installs = any(step.get("run") == INSTALL for step in job["steps"])
        for index, step in enumerate(job["steps"]):
            if "if" in step and not condition(step["if"], context):
                continue
            if done.result != "success" and "cancelled()" not in step.get("if", ""):
                continue
            if lost and "upload-artifact" in step.get("uses", ""):
                done.result = "failure"
                done.log += "The runner has received a shutdown signal.\n"
                break
            if "uses" in step:
                try:
                    self._action(step, workspace, execution, context)
                except FileNotFoundError as error:
                    done.result = "failure"
                    done.log += f"Error: {error}\n"
                continue
            outputs = place / f"output-{index}"
            summary = place / f"summary-{index}"
            environ = self._environ(workflow, job, step, context, installs=installs) | {
                "GITHUB_OUTPUT": str(outputs),
                "GITHUB_STEP_SUMMARY": str(summary),
                "SOURCE_DATE_EPOCH": str(1_800_000_000 + 86_400 * execution.number),
            }
            if fill(step["run"], context) != INSTALL:
                code, printed = self._shell(fill(step["run"], context), workspace, environ)
                done.log += printed
                if code:
                    done.result = "failure"
            if summary.exists():
                done.summary += summary.read_text(encoding="utf-8")
            if "id" in step and outputs.exists():
                lines = (line.partition("=") for line in outputs.read_text().splitlines())
                context["steps"][step["id"]] = {"outputs": {key: value for key, _, value in lines}}
        done.outputs = {key: fill(text, context) for key, text in job.get("outputs", {}).items()}
        return done

    def _environ(
        self,
        workflow: dict[str, Any],
        job: dict[str, Any],
        step: dict[str, Any],
        context: dict[str, Any],
        *,
        installs: bool,
    ) -> dict[str, str]:
        own = {**workflow.get("env", {}), **job.get("env", {}), **step.get("env", {})}
        python = Path(sys.executable).parent if installs else self.folder / "bare"
        return {
            **os.environ,
            **self.environ,
            "PATH": os.pathsep.join([str(self.folder / "bin"), str(python), os.environ["PATH"]]),
            "FAKE_GH": str(self.folder / "issues.json"),
            "GITHUB_SERVER_URL": "https://forge.example",
            "GITHUB_REPOSITORY": "Somebody/longrope",
            "NO_COLOR": "1",
            "MATRIX_RUN": "test",
            **{key: str(fill(str(value), context)) for key, value in own.items()},
        }

    def _shell(self, text: str, workspace: Path, environ: dict[str, str]) -> tuple[int, str]:
        shared, own = self.runtimes / "runtimes", workspace / "work" / "runtimes"
        shared.mkdir(parents=True, exist_ok=True)
        own.parent.mkdir(exist_ok=True)
        if not own.exists():
            own.symlink_to(shared, target_is_directory=True)
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", text],
            cwd=workspace,
            env=environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=600,
            check=False,
        )
        return done.returncode, f"$ {text}\n{done.stdout}"

    def _action(
        self,
        step: dict[str, Any],
        workspace: Path,
        execution: Execution,
        context: dict[str, Any],
    ) -> None:
        action = step["uses"].partition("@")[0]
        given = {key: fill(str(value), context) for key, value in step.get("with", {}).items()}
        match action:
            case "actions/checkout":
                clone = ("clone", "--quiet", str(self.repository), ".")
                subprocess.run(["git", *clone], cwd=workspace, check=True)
            case "astral-sh/setup-uv":
                pass
            case "actions/upload-artifact":
                _upload(workspace, given["path"], execution.artifacts / given["name"])
            case "actions/download-artifact" if "pattern" in given:
                for artifact in execution.artifacts.glob(given["pattern"]):
                    shutil.copytree(artifact, workspace / given["path"] / artifact.name)
            case "actions/download-artifact":
                source = execution.artifacts / given["name"]
                shutil.copytree(source, workspace / given["path"], dirs_exist_ok=True)
            case "actions/upload-pages-artifact":
                _upload(workspace, given["path"], execution.artifacts / "github-pages")
            case "actions/deploy-pages":
                shutil.rmtree(self.page, ignore_errors=True)
                shutil.copytree(execution.artifacts / "github-pages", self.page)
            case _:
                raise ValueError(f"nobody plays {action}")


def _entries(job: dict[str, Any], context: dict[str, Any]) -> Iterator[dict[str, Any]]:
    matrix = job.get("strategy", {}).get("matrix")
    if matrix is None:
        yield {}
        return
    assert len(matrix) == 1
    for key, text in matrix.items():
        for value in fill(text, context):
            yield {key: value}


def _upload(workspace: Path, paths: str, target: Path) -> None:
    """Without hidden files, and from where the paths part on, as the action does it."""
    found = [workspace / line.strip() for line in paths.splitlines() if line.strip()]
    found = [path for path in found if path.exists()]
    if not found:
        raise FileNotFoundError(f"nothing to upload: {paths}")
    base = Path(os.path.commonpath([str(path) for path in found]))
    base = base if base.is_dir() else base.parent
    shutil.rmtree(target, ignore_errors=True)
    for path in found:
        files = [path] if path.is_file() else [one for one in path.rglob("*") if one.is_file()]
        for file in files:
            inside = file.relative_to(base)
            if not any(part.startswith(".") for part in inside.parts):
                (target / inside).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, target / inside)
