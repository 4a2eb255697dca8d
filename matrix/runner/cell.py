"""One cell in this process: limits, paths, and the checks on the release that is there.

``python -m matrix.runner.cell JOB.json`` runs it in a fresh interpreter; the server in
`matrix.runner.__main__` calls `run` in a forked one. Both give the same records.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Optional

from matrix.runner.bytecode import Bytecode


@dataclass(frozen=True)
class Job:
    """What one process is to do.

    Attributes:
        cell: Name of the cell, for messages only.
        paths: Folders to put ahead of the runtime's own packages: the layer, if there is one.
        cases: Ids of the cases to run.
        out: File that gets one line of JSON for each thing that happens.
        log: File that gets whatever the cell prints.
        scratch: Working folder of the cell.
        case_seconds: Longest that one case may take.
        memory_mb: Most memory that the process may have, in MiB; None for no limit.
        tests: Arguments of pytest, to run tests of the user's own instead of `checks`.
        layer: The one of `paths` whose compiled modules are shared; None to share none.
        bytecode: Folder of those.
    """

    cell: str
    paths: tuple[str, ...]
    cases: tuple[str, ...]
    out: str
    log: str
    scratch: str
    case_seconds: float
    memory_mb: Optional[int]  # noqa: UP045 (read by Python 3.9 at run time)
    tests: tuple[str, ...] = ()
    layer: Optional[str] = None  # noqa: UP045
    bytecode: Optional[str] = None  # noqa: UP045

    def to_json(self) -> str:
        """One line of JSON."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> Job:
        """The job that `to_json` wrote."""
        fields = json.loads(text)
        lists = {name: tuple(value) for name, value in fields.items() if isinstance(value, list)}
        return cls(**{**fields, **lists})


def run(job: Job) -> None:
    """Run the cases of `job` here. What comes of it is in ``job.out``, not returned.

    Changes this process for good (limits, working folder, paths, output), so that it must
    not be used for anything else.
    """
    _redirect_output(job.log)
    if job.memory_mb is not None:
        _limit_memory(job.memory_mb)
    os.chdir(job.scratch)
    # Behind the repository, which holds `checks`, so that no release can shadow it.
    sys.path[1:1] = job.paths
    if job.layer is None or job.bytecode is None:
        _measure(job)
        return
    shared = Bytecode(Path(job.bytecode))
    shared.lend(Path(job.layer))
    _measure(job)
    shared.keep(Path(job.layer))


def _measure(job: Job) -> None:
    importlib.invalidate_caches()
    if job.tests:
        importlib.import_module("matrix.runner.own_cell").measure(job)
        return
    cases = Path(job.out).with_suffix(".cases")
    cases.write_text("\n".join(job.cases) + "\n", encoding="utf-8")
    checks = importlib.import_module("checks.__main__")
    checks.main(["--cases", str(cases), "--out", job.out, "--time-limit", str(job.case_seconds)])


def _redirect_output(log: str) -> None:
    """Send both output streams to a file, at the level of the operating system."""
    sys.stdout.flush()
    sys.stderr.flush()
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    os.close(descriptor)


def _limit_memory(megabytes: int) -> None:
    """Let the operating system refuse more memory; a no-op where it has no such limit.

    Data, not address space: torch reserves far more of the latter than it uses.
    """
    try:
        import resource
    except ImportError:
        return
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    limit = megabytes * 2**20
    if hard != resource.RLIM_INFINITY:
        limit = min(limit, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, hard))


def main() -> None:
    """Run the job whose file is named on the command line."""
    root = str(Path(__file__).resolve().parents[2])
    # `-m` has put the working folder there, which is this one; be sure of it.
    sys.path[0] = root
    run(Job.from_json(Path(sys.argv[1]).read_text(encoding="utf-8")))


if __name__ == "__main__":
    main()
