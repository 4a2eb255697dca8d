"""Runs the cells of one runtime: a layer for each, a process for each, records as they come."""

from __future__ import annotations

import os
import shutil
import time
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

import msgspec

from matrix.environment import cell_environ
from matrix.executors import FORK_IS_SAFE, Executor, ForkExecutor, FreshExecutor
from matrix.layers import Installed, Installer, NotInstalled
from matrix.outcomes import RecordMaker, read_outcome
from matrix.plan import apart
from matrix.records import Evidence, Provenance, Reason, Record, Status
from matrix.runner.cell import Job
from matrix.tidy import tidy

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from matrix.grid import Limits, Runtime
    from matrix.ledger import Ledger
    from matrix.plan import PlannedCell
    from matrix.progress import Reporter
    from matrix.runtimes import Environment

INSTALLING_AHEAD = 3
"""How many layers are made while the workers are busy."""
MOST_PROCESSES = 4
"""How many processes of one cell may die before the rest of its cases is given up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """Where the cells of one runtime run.

    Attributes:
        runtime: The runtime.
        environment: As it is installed.
        installer: Gets releases ready.
        folder: Folder for what the processes write.
        ledger: Where records go as cells finish.
        limits: What a cell may take.
        workers: Cells at a time.
        isolated: Whether every cell gets a fresh interpreter.
        check_revision: Revision of the checks.
        harness_commit: Commit of the harness.
        now: The clock.
        places: Folders of this machine -> what they are called in a record.
        tests: Arguments of pytest, to run tests of the user's own instead of `checks`.
        paths: Folders that those import from, behind the release.
        bytecode: Folder of the compiled modules that layers share; None to share none.
    """

    runtime: Runtime
    environment: Environment
    installer: Installer
    folder: Path
    ledger: Ledger
    limits: Limits
    workers: int
    isolated: bool
    check_revision: str
    harness_commit: str | None
    now: Callable[[], str]
    places: Mapping[str, str]
    tests: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    bytecode: Path | None = None


class CellRunner:
    """Runs cells, several at a time. Close it after use."""

    def __init__(self, bench: Bench, reporter: Reporter) -> None:
        self._bench = bench
        self._reporter = reporter
        shutil.rmtree(bench.folder, ignore_errors=True)
        home = bench.folder / "home"
        home.mkdir(parents=True)
        self._environ = cell_environ(os.environ, home)
        self._executors: dict[str, Executor] = {}
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def run(self, cells: Sequence[PlannedCell]) -> None:
        """Run `cells`; their records are in the ledger when each is done.

        Raises:
            HarnessError: The harness itself could not go on.
            KeyboardInterrupt: The user wants to stop; what was finished is in the ledger.
        """
        # Started before any thread waits for it: torch is imported while layers are made.
        self._executor(self._bench.environment.executable)
        pool = ThreadPoolExecutor(
            max_workers=self._bench.workers + INSTALLING_AHEAD, thread_name_prefix="cell"
        )
        try:
            pending: set[Future[None]] = {
                pool.submit(self._run_cell, cell) for cell in apart(cells, self._bench.workers)
            }
            while pending:
                done, pending = wait(pending, return_when=FIRST_COMPLETED)
                for future in done:
                    future.result()
        except BaseException:
            self._stack.close()  # or else the threads would wait for their cells
            raise
        finally:
            pool.shutdown(wait=True, cancel_futures=True)

    def _run_cell(self, cell: PlannedCell) -> None:
        began = time.monotonic()
        provenance = Provenance(
            check_revision=self._bench.check_revision,
            started_at=self._bench.now(),
            harness_commit=self._bench.harness_commit,
            extras=self._bench.runtime.extras,
        )
        records = self._measure(cell, provenance)
        seconds = round(time.monotonic() - began, 1)
        records = tuple(
            msgspec.structs.replace(
                tidy(record, self._bench.places),
                provenance=msgspec.structs.replace(record.provenance, seconds=seconds),
            )
            for record in records
        )
        self._bench.ledger.add(records, replace=True)
        self._reporter.cell_done(cell.name, records, seconds)

    def _measure(self, cell: PlannedCell, provenance: Provenance) -> tuple[Record, ...]:
        maker = RecordMaker(
            release=cell.release, runtime=self._bench.environment, provenance=provenance
        )
        if not cell.release.admits_python(self._bench.runtime.python):
            return maker.all_alike(
                cell.cases,
                Status.UNSUPPORTED,
                Reason.DEPENDENCY_CONFLICT,
                Evidence(message=f"the release wants Python {cell.release.requires_python}"),
            )
        self._reporter.doing(f"installing {cell.release.name}")
        installed = self._bench.installer.install(cell.release)
        if isinstance(installed, NotInstalled):
            return maker.not_installed(installed, cell.cases)
        executor = self._executor(Path(installed.executable))
        provenance = msgspec.structs.replace(
            provenance,
            packages=self._bench.ledger.add_lock(installed.packages),
            isolation=installed.isolation,
            process=executor.process,
        )
        maker = RecordMaker(
            release=cell.release, runtime=self._bench.environment, provenance=provenance
        )
        return self._run_processes(cell, installed, executor, maker)

    def _run_processes(
        self, cell: PlannedCell, installed: Installed, executor: Executor, maker: RecordMaker
    ) -> tuple[Record, ...]:
        """Run the cases in one process, and in another what a process that died left."""
        records: list[Record] = []
        left = cell.cases
        for number in range(1, MOST_PROCESSES + 1):
            self._reporter.doing(f"checking {cell.release.name}")
            job = self._job(cell, installed, left, number)
            ending = executor.submit(job).result()
            outcome = read_outcome(
                Path(job.out), Path(job.log), ending=ending.ending, message=ending.message
            )
            settled = maker.from_outcome(outcome, left)
            records += settled
            done = {record.case for record in settled}
            left = tuple(case for case in left if case not in done)
            if not left:
                return tuple(records)
        evidence = Evidence(
            message=f"not tried: {MOST_PROCESSES} processes of this cell ended before they got here"
        )
        reason = records[-1].reason or Reason.CRASHED
        return (*records, *maker.all_alike(left, Status.ERROR, reason, evidence))

    def _job(
        self, cell: PlannedCell, installed: Installed, cases: tuple[str, ...], number: int
    ) -> Job:
        name = f"{cell.release.key}.{number}"
        scratch = self._bench.folder / "home" / name
        scratch.mkdir(exist_ok=True)
        # CUDA maps far more than it uses, which the limit would count.
        on_cpu = all(case.split("/")[3] == "cpu" for case in cases)
        return Job(
            cell=name,
            paths=(*installed.paths, *self._bench.paths),
            cases=cases,
            out=str(self._bench.folder / f"{name}.jsonl"),
            log=str(self._bench.folder / f"{name}.log"),
            scratch=str(scratch),
            case_seconds=self._bench.limits.seconds_per_case,
            memory_mb=self._bench.limits.memory_per_cell_mb if on_cpu else None,
            tests=self._bench.tests,
            layer=next(iter(installed.paths), None),
            bytecode=str(self._bench.bytecode) if self._bench.bytecode else None,
        )

    def _executor(self, executable: Path) -> Executor:
        """The executor for an interpreter: a fork server only where many cells share it."""
        bench = self._bench
        key = str(executable)
        if key not in self._executors:
            shared = executable == bench.environment.executable
            executor: Executor
            if shared and FORK_IS_SAFE and not bench.isolated:
                executor = ForkExecutor(
                    executable,
                    self._environ,
                    workers=bench.workers,
                    seconds=bench.limits.seconds_per_cell,
                    log=bench.folder / "server.log",
                )
            else:
                executor = FreshExecutor(
                    executable,
                    self._environ,
                    workers=bench.workers if shared else 1,
                    seconds=bench.limits.seconds_per_cell,
                )
            self._executors[key] = executor
            self._stack.callback(executor.close)
        return self._executors[key]
