# /// script
# requires-python = ">=3.9"
# dependencies = ["nox[uv]>=2025.5.1"]
# ///
"""Sessions: ``nox`` runs the matrix; ``nox -l`` lists the rest; options go behind ``--``.

Thin on purpose: what a session does is a command of `matrix`, `reports` or `checks`. They
share one environment with the harness's dependencies; the runtimes that `cells` makes are
environments of their own.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import nox

ROOT = Path(__file__).resolve().parent
WORK = Path(os.environ.get("MATRIX_WORK") or ROOT / ".matrix").resolve()
PROJECT = nox.project.load_toml("pyproject.toml")
GRID = Path(os.environ.get("MATRIX_GRID") or ROOT / "matrix" / "grid.toml")

nox.needs_version = ">=2025.5.1"
nox.options.sessions = ["matrix"]
nox.options.default_venv_backend = "none"

# Names this run for all sessions of it, so that they find the same plan.
os.environ.setdefault("MATRIX_RUN", f"run-{os.getpid()}")


def pairs() -> list[Any]:
    """The (Python, torch) pairs of the grid, and those named after ``--runtimes``.

    A grid with mistakes in it gives a placeholder: `plan` comes first, and says what they are.
    """
    found = []
    try:
        for entry in nox.project.load_toml(GRID)["runtimes"]:
            name = f"{entry['python']}/{entry['torch']}"
            found.append("+".join([name, *entry.get("with", [])]))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        found = ["?/?"]
    if "--runtimes" in sys.argv:
        for word in sys.argv[sys.argv.index("--runtimes") + 1 :]:
            if word.startswith("-"):
                break
            if "/" in word and word not in found:
                found.append(word)
    return [nox.param(*name.split("/", 1), id=name) for name in found]


def harness(session: nox.Session, group: str = "harness") -> str:
    """The interpreter of the environment with one dependency group, made when it changes."""
    uv = shutil.which("uv") or _uv_of_package()
    if uv is None:
        session.error('uv is not installed. Install it: pip install "nox[uv]"')
    place = WORK / "harness" / group
    python = place / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    requirements = nox.project.dependency_groups(PROJECT, group)
    digest = hashlib.sha256("\n".join(requirements).encode()).hexdigest()
    stamp = place / "requirements.sha256"
    if not stamp.exists() or stamp.read_text(encoding="utf-8") != digest:
        environment = _index_settings()
        session.log(f"Making the environment for {group}")
        wanted = PROJECT["project"]["requires-python"]
        session.run_install(
            *(uv, "venv", "--quiet", "--clear", "--python", wanted, str(place)),
            env=environment,
            external=True,
        )
        session.run_install(
            *(uv, "pip", "install", "--quiet", "--python", str(python), *requirements),
            env=environment,
            external=True,
        )
        if python.exists():  # not so under `nox --no-install`
            stamp.write_text(digest, encoding="utf-8")
    return str(python)


def _uv_of_package() -> str | None:
    try:
        from uv import find_uv_bin
    except ImportError:
        return None
    return find_uv_bin()


def _index_settings() -> dict[str, str]:
    """Pip's index settings, as variables for uv."""
    answer = subprocess.run(
        [sys.executable, "-m", "matrix.index_settings"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    settings: dict[str, str] = json.loads(answer.stdout)
    return settings


def run(session: nox.Session, *command: str, group: str = "harness") -> None:
    """Run ``python …`` in the environment of a dependency group."""
    session.run(harness(session, group), *command, external=True)


def is_chosen(runtime: str) -> bool:
    """Whether this run's plan has the runtime; a plan that is elsewhere may have it."""
    plan = WORK / "runs" / os.environ["MATRIX_RUN"] / "plan.json"
    if not plan.exists():
        return True
    return runtime in json.loads(plan.read_text(encoding="utf-8"))["names"]


@nox.session
def plan(session: nox.Session) -> None:
    """Resolve the grid, minus what the ledger knows; frozen for this run."""
    run(session, "-m", "matrix", "plan", *session.posargs)


@nox.session(requires=["plan"])
@nox.parametrize(("interpreter", "torch"), pairs())
def cells(session: nox.Session, interpreter: str, torch: str) -> None:
    """Run the plan's cells on one runtime."""
    runtime = f"{interpreter}/{torch}"
    if not is_chosen(runtime):
        session.log(f"{runtime} is not chosen for this run")
        return
    run(session, "-m", "matrix", "cells", runtime, *session.posargs)


@nox.session(requires=["cells"])
def matrix(session: nox.Session) -> None:
    """Resolve, run what the ledger lacks, gather, and render reports/site/."""
    run(session, "-m", "reports", *session.posargs)


@nox.session
def report(session: nox.Session) -> None:
    """Render the report from what is recorded. Runs nothing."""
    run(session, "-m", "reports", *session.posargs)


@nox.session
def bisect(session: nox.Session) -> None:
    """Find where a case changed: -- --good REF --bad REF [--repo PATH] [--case CASE]."""
    run(session, "-m", "matrix", "bisect", *session.posargs)


@nox.session
def own(session: nox.Session) -> None:
    """Run a pytest test of your own on the grid: -- TEST ... [--releases SPEC ...]."""
    where = ("--from", session.invoked_from)
    run(session, "-m", "reports.own", *session.posargs, *where)


@nox.session
def tests(session: nox.Session) -> None:
    """Run the tests."""
    run(session, "-m", "pytest", *session.posargs, group="tests")


@nox.session
def site(session: nox.Session) -> None:
    """Look at the page in Chromium: behaviour, accessibility, valid HTML."""
    words = session.posargs or ["tests/reports/browser"]
    run(session, "-m", "pytest", *words, group="site")


@nox.session
def lint(session: nox.Session) -> None:
    """Check style, types, which part imports which, and the workflows."""
    python = harness(session, "lint")
    bin_folder = Path(python).parent
    session.run(str(bin_folder / "ruff"), "check", ".", external=True)
    session.run(str(bin_folder / "ruff"), "format", "--check", ".", external=True)
    session.run(str(bin_folder / "mypy"), external=True)
    session.run(str(bin_folder / "lint-imports"), external=True)
    zizmor = ("--offline", "--quiet", "--persona=auditor", ".github")
    session.run(str(bin_folder / "zizmor"), *zizmor, external=True)
    workflows = sorted(str(path) for path in Path(".github", "workflows").glob("*.yml"))
    for schema, files in (
        ("vendor.github-workflows", workflows),
        ("vendor.dependabot", [str(Path(".github", "dependabot.yml"))]),
    ):
        check = ("--builtin-schema", schema, *files)
        session.run(str(bin_folder / "check-jsonschema"), *check, external=True)


if __name__ == "__main__":
    nox.main()
