"""Runs the harness's commands as a user would, in a work folder of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matrix.index_settings import settings_here
from matrix.ledger import Ledger

ROOT = Path(__file__).resolve().parents[2]
GRID = """
[releases]
package = "{package}"
since = "{since}"
run = {run}
repository = "{repository}"
stale_after_days = 7

[[runtimes]]
python = "3.11"
torch = "2.13.0"

[cases]
models = ["phi3"]
scenarios = {scenarios}
attention = ["eager", "sdpa"]
devices = ["cpu", "cuda"]
dtypes = ["float32"]

[limits]
seconds_per_case = {case_seconds}
seconds_per_cell = {seconds}
memory_per_cell_mb = 2500
workers = 2
"""


def grid_text(
    *,
    package: str = "transformers",
    since: str = "4.41.0",
    run: tuple[str, ...] = ("all",),
    repository: str = "https://example.invalid/transformers",
    scenarios: tuple[str, ...] = ("core",),
    seconds: int = 300,
    case_seconds: int = 60,
) -> str:
    """A grid with one runtime."""
    return GRID.format(
        package=package,
        since=since,
        run=json.dumps(run),
        repository=repository,
        scenarios=json.dumps(scenarios),
        seconds=seconds,
        case_seconds=case_seconds,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """What a command did: its exit code, and all that it printed."""

    code: int
    output: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Harness:
    """A checkout with its own grid, work folder, ledger and site.

    Attributes:
        folder: Where all of these are.
        runtimes: Work folder whose runtimes are shared, since torch is large.
        index: Address of an index to use beside the user's own, or None.
    """

    folder: Path
    runtimes: Path
    index: str | None = None

    def write_grid(self, **settings: Any) -> None:
        """Write the grid that the commands read; see `grid_text`."""
        self.grid.write_text(grid_text(**settings), encoding="utf-8")

    @property
    def grid(self) -> Path:
        """The grid file."""
        return self.folder / "grid.toml"

    @property
    def site(self) -> Path:
        """Where reports go."""
        return self.folder / "site"

    @property
    def ledger(self) -> Ledger:
        """The local ledger."""
        return Ledger(self.folder / "work" / "ledger")

    def environ(self) -> dict[str, str]:
        """The environment of the commands."""
        work = self.folder / "work"
        work.mkdir(parents=True, exist_ok=True)
        shared, own = self.runtimes / "runtimes", work / "runtimes"
        shared.mkdir(parents=True, exist_ok=True)
        if not own.exists():
            own.symlink_to(shared, target_is_directory=True)
        environ = {**os.environ, **settings_here()}
        if self.index:
            environ["UV_INDEX"] = " ".join(filter(None, [environ.get("UV_INDEX"), self.index]))
            environ["UV_INDEX_STRATEGY"] = "unsafe-best-match"
        return {
            **environ,
            "MATRIX_GRID": str(self.grid),
            "MATRIX_WORK": str(work),
            "MATRIX_LEDGER": str(self.folder / "ledger"),
            "MATRIX_RUN": "test",
            "NO_COLOR": "1",
        }

    def run(self, module: str, *arguments: str, timeout: float = 900) -> Done:
        """Run ``python -m MODULE …``."""
        done = subprocess.run(
            [sys.executable, "-m", module, *arguments],
            cwd=ROOT,
            env=self.environ(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=timeout,
            check=False,
        )
        return Done(code=done.returncode, output=done.stdout)

    def matrix(self, *options: str) -> Done:
        """What ``nox -s matrix -- OPTIONS`` runs, one command after the other."""
        output = ""
        for command in (
            ("matrix", "plan", *options),
            ("matrix", "cells", "3.11/2.13.0", *options),
            ("reports", "--site", str(self.site), *options),
        ):
            done = self.run(*command)
            output += done.output
            if done.code:
                return Done(code=done.code, output=output)
        return Done(code=0, output=output)
