"""The work folder: everything that a run leaves on this machine, under `.matrix/`."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from matrix.ledger import Ledger, runtime_folder

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True, slots=True)
class Work:
    """Places in the work folder."""

    root: Path

    @property
    def ledger(self) -> Ledger:
        """Records that were made here and that nobody has asked to keep."""
        return Ledger(self.root / "ledger")

    @property
    def runtimes(self) -> Path:
        """Environments, one for each runtime."""
        return self.root / "runtimes"

    @property
    def places(self) -> dict[str, str]:
        """Folders of this machine -> what they are called in a record."""
        return {str(self.root): ".matrix", str(ROOT): ".", str(Path.home()): "~"}

    @property
    def plan(self) -> Path:
        """The plan of the newest run, or of the one that `MATRIX_RUN` names."""
        return self.root / "runs" / os.environ.get("MATRIX_RUN", "latest") / "plan.json"

    def forget_old_runs(self, keep: int = 10) -> None:
        """Delete what all but the newest runs wrote; their records are in the ledger."""
        runs = sorted((self.root / "runs").glob("*"), key=lambda run: run.stat().st_mtime)
        for run in runs[:-keep]:
            shutil.rmtree(run, ignore_errors=True)

    def layers(self, runtime: str) -> Path:
        """Layers on one runtime."""
        return self.root / "layers" / runtime_folder(runtime)

    @property
    def bytecode(self) -> Path:
        """Compiled modules that layers share."""
        return self.root / "bytecode"

    def run_folder(self, runtime: str) -> Path:
        """What the processes of this run write, for one runtime."""
        return self.plan.parent / runtime_folder(runtime)


def work_folder() -> Work:
    """The work folder of this checkout, or the one that `MATRIX_WORK` names."""
    return Work(Path(os.environ.get("MATRIX_WORK") or ROOT / ".matrix").resolve())


def committed_ledger() -> Ledger:
    """The ledger of this checkout, or the one that `MATRIX_LEDGER` names."""
    return Ledger(Path(os.environ.get("MATRIX_LEDGER") or ROOT / "reports" / "ledger").resolve())


def grid_file() -> Path:
    """The grid of this checkout, or the one that `MATRIX_GRID` names."""
    return Path(os.environ.get("MATRIX_GRID") or ROOT / "matrix" / "grid.toml").resolve()
