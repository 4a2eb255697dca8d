"""What the workflow files promise, read from the files."""

from __future__ import annotations

import ast
import os
import re
import shlex
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from ruamel.yaml import YAML

from matrix import ci_awake
from matrix.grid import load_grid
from matrix.index_settings import settings_here
from matrix.uv import find_uv
from tests.workflows.platform import ROOT, WORKFLOWS, read_workflow

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NAMES = sorted(path.name for path in WORKFLOWS.glob("*.yml"))
INSTALLING = ("uv pip install --group harness", 'uv pip install "nox[uv]"')
COMMAND = re.compile(
    r"nox -s (?P<session>\w+)|python3? -m (?P<module>[\w.]+)( [\w./-]+| \"[\w./$-]+\")*"
)


def jobs(name: str) -> dict[str, dict[str, Any]]:
    """The jobs of a workflow."""
    found: dict[str, dict[str, Any]] = read_workflow(name)["jobs"]
    return found


def steps(name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The steps of a workflow, with the job that each belongs to."""
    for job, content in jobs(name).items():
        for step in content["steps"]:
            yield job, step


def module_path(module: str) -> Path:
    """The file of one of our modules."""
    path = ROOT.joinpath(*module.split("."))
    return path / "__main__.py" if path.is_dir() else path.with_suffix(".py")


@pytest.mark.parametrize("name", NAMES)
def test_steps_run_sessions_and_commands_of_ours(name: str) -> None:
    """A step is one line that can be run and tested here; no shell script lives in a workflow."""
    noxfile = (ROOT / "noxfile.py").read_text(encoding="utf-8")
    for _, step in steps(name):
        if "run" not in step or step["run"] in INSTALLING:
            continue
        found = COMMAND.fullmatch(step["run"])
        assert found, step["run"]
        if found["session"]:
            assert f"\ndef {found['session']}(session" in noxfile
        else:
            assert module_path(found["module"]).is_file(), step["run"]


@pytest.mark.slow
@pytest.mark.parametrize("command", INSTALLING)
def test_what_installs_can_be_installed(command: str) -> None:
    """The two lines that are no commands of ours; uv says what it would do."""
    environ = {**os.environ, **settings_here()}
    words = shlex.split(command)
    done = subprocess.run(
        [find_uv(environ).executable, *words[1:], "--dry-run", "--python", sys.executable],
        cwd=ROOT,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert words[0] == "uv"
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", NAMES)
def test_no_expression_reaches_a_shell(name: str) -> None:
    """Inputs and outputs come in through the environment, where they are data."""
    for _, step in steps(name):
        assert "${{" not in step.get("run", "")


@pytest.mark.parametrize("name", NAMES)
def test_actions_are_pinned_by_commit_and_say_their_version(name: str) -> None:
    """A tag can be moved; and a reader wants to know which version it is."""
    text = (WORKFLOWS / name).read_text(encoding="utf-8")
    used = re.findall(r"uses: (.+)", text)
    assert used
    for one in used:
        assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", one), one


def test_one_action_has_one_pin() -> None:
    """So that no workflow lags behind."""
    pins: dict[str, set[str]] = {}
    for name in NAMES:
        for _, step in steps(name):
            if "uses" in step:
                action, _, commit = step["uses"].partition("@")
                pins.setdefault(action, set()).add(commit)
    assert {action: len(commits) for action, commits in pins.items() if len(commits) > 1} == {}


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_permitted_that_a_job_does_not_name(name: str) -> None:
    """No permission by default, a limit in time, and no credentials left in a checkout."""
    workflow = read_workflow(name)
    assert workflow["permissions"] == {}
    assert "secrets." not in (WORKFLOWS / name).read_text(encoding="utf-8")
    assert "pull_request_target" not in workflow["on"]
    for job in workflow["jobs"].values():
        assert job["timeout-minutes"] <= 120
        for step in job["steps"]:
            if "actions/checkout@" in step.get("uses", ""):
                assert step["with"]["persist-credentials"] is False


def test_what_may_write_runs_nothing_that_was_installed() -> None:
    """A token that may write meets neither a package under test nor one of anybody else's."""
    writing: dict[str, dict[str, str]] = {}
    for name in NAMES:
        for job, content in jobs(name).items():
            allowed = {key: how for key, how in content["permissions"].items() if how == "write"}
            if allowed:
                writing[f"{name}/{job}"] = allowed
                for step in content["steps"]:
                    assert "setup-uv" not in step.get("uses", "")
                    assert step.get("run") not in INSTALLING
    assert writing == {
        "matrix.yml/publish": {"pages": "write", "id-token": "write"},
        "matrix.yml/keep": {"contents": "write"},
        "matrix.yml/watch": {"issues": "write"},
        "matrix.yml/awake": {"actions": "write"},
    }


def test_what_runs_beside_a_token_needs_the_standard_library_alone() -> None:
    """Also by the imports of its modules, and of ours that they import."""
    seen: set[str] = set()
    todo = ["matrix.ci_branch", "matrix.ci_gate", "matrix.ci_awake", "reports.watch_issues"]
    while todo:
        module = todo.pop()
        seen.add(module)
        tree = ast.parse(module_path(module).read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module:
                names = [node.module]
            for name in names:
                if name.partition(".")[0] in ("matrix", "reports"):
                    todo += [] if name in seen else [name]
                else:
                    assert name.partition(".")[0] in sys.stdlib_module_names, f"{module}: {name}"
    assert seen >= {"matrix.errors", "matrix.git"}


def test_what_runs_releases_saves_no_cache() -> None:
    """A release that writes to a cache must not be read by the job that renders the page."""
    for name, job in (("matrix.yml", "cells"), ("ci.yml", "tests")):
        [setup] = [s for s in jobs(name)[job]["steps"] if "setup-uv" in s.get("uses", "")]
        assert setup["with"]["save-cache"] is False
    [setup] = [s for _, s in steps("try.yml") if "setup-uv" in s.get("uses", "")]
    assert setup["with"]["enable-cache"] is False


def test_strangers_code_runs_by_hand_only_and_keeps_nothing() -> None:
    """Neither a schedule nor a pull request starts it, and it has no way to publish."""
    workflow = read_workflow("try.yml")
    assert list(workflow["on"]) == ["workflow_dispatch"]
    assert [job["permissions"] for job in workflow["jobs"].values()] == [{"contents": "read"}]
    untrusted = [name for name in NAMES for _, s in steps(name) if "--untrusted" in str(s)]
    assert untrusted == ["try.yml"]


def test_the_schedule_is_at_an_odd_minute_and_keeps_itself_awake() -> None:
    """At full hours everybody's schedules start, late; after 60 idle days none would."""
    workflow = read_workflow("matrix.yml")
    [schedule] = workflow["on"]["schedule"]
    minute = int(schedule["cron"].split()[0])
    assert minute % 5
    assert ci_awake.WORKFLOW == "matrix.yml"
    assert workflow["jobs"]["awake"]["if"] == "github.event_name == 'schedule'"


def test_one_broken_cell_stops_no_other() -> None:
    """Nor does a failed job keep the report away."""
    found = jobs("matrix.yml")
    assert found["cells"]["strategy"]["fail-fast"] is False
    assert "!cancelled()" in found["report"]["if"]
    assert "!cancelled()" in found["gate"]["if"]
    assert set(found["gate"]["needs"]) == set(found) - {"awake", "gate"}


def test_the_runtime_offered_by_hand_is_the_grids_first() -> None:
    """The form cannot read the grid."""
    offered = read_workflow("try.yml")["on"]["workflow_dispatch"]["inputs"]["runtime"]["default"]
    assert offered == load_grid(ROOT / "matrix" / "grid.toml").runtimes[0].name


def test_updates_come_grouped_and_not_on_the_day_of_their_release() -> None:
    """One request for each sort, of what has stood for a while."""
    updates = YAML(typ="safe").load(ROOT / ".github" / "dependabot.yml")["updates"]
    assert {one["package-ecosystem"] for one in updates} == {"github-actions", "pip"}
    for one in updates:
        assert one["cooldown"]["default-days"] >= 7
        assert [group["patterns"] for group in one["groups"].values()] == [["*"]]
