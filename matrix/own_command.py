"""``nox -s own``: the user's own tests in the cells of the grid. Nothing of it is recorded."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from checks.revision import check_revision
from matrix.cells import Bench, CellRunner
from matrix.commands import prepare_bench, world_here
from matrix.errors import OptionsError
from matrix.grid import load_grid
from matrix.ledger import Ledger, read_file, runtime_folder
from matrix.machine import harness_commit, now
from matrix.own_intervals import failing, intervals
from matrix.own_results import WORDS, OwnRun, own_cell, shorten
from matrix.plan import PlannedCell
from matrix.progress import Reporter
from matrix.records import Reason, Status, release_order
from matrix.resolve import make_plan, refine_plan
from matrix.work import ROOT, Work, grid_file, work_folder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matrix.grid import Runtime
    from matrix.own_options import OwnOptions
    from matrix.own_results import OwnCell
    from matrix.plan import Plan
    from matrix.records import Record

LINE = 120
"""Characters of a message in the line of a cell; the table and the files have more."""


class OwnReporter(Reporter):
    """Says what the tests showed, in their words."""

    def told(self, records: Sequence[Record]) -> str:
        """The one record of a cell, in a few words."""
        return "; ".join(told(record) for record in records)


def told(record: Record) -> str:
    """``failed (test_a: AssertionError …)``."""
    reason = f"{record.reason}: " if record.reason else ""
    message = shorten(record.evidence.message or "", LINE)
    if record.status is Status.OK:
        return message or WORDS[record.status]
    return f"{WORDS[record.status]} ({reason}{message})"


@dataclass(slots=True)
class OwnSession:
    """One run, as far as it has come: an interrupt leaves what was finished.

    Attributes:
        options: What the user asked for.
        reporter: Who says how it goes on.
        plan: What is run; None before it is resolved.
        records: One for each cell that ended.
        cells: The same, with its tests.
        planned: Names of the cells that were begun or would have been.
    """

    options: OwnOptions
    reporter: Reporter
    plan: Plan | None = None
    records: list[Record] = field(default_factory=list)
    cells: dict[tuple[str, str], OwnCell] = field(default_factory=dict)
    planned: list[str] = field(default_factory=list)

    def run(self) -> None:
        """Resolve the grid and run the tests in each cell.

        Raises:
            OptionsError: The tests collect nothing.
            HarnessError: The harness itself could not go on.
            KeyboardInterrupt: The user wants to stop.
        """
        work = work_folder()
        world = world_here(self.options.base)
        with self.reporter.phase("resolving releases"):
            plan = make_plan(load_grid(grid_file()), self.options.grid, world, (), check_revision())
        runtimes = tuple(self._with_requirements(runtime) for runtime in plan.runtimes)
        # The whole run of pytest is the one case. The last device is the one that tests may use.
        case = f"own/tests/any/{world.devices[-1]}/any"
        self.plan = plan = msgspec.structs.replace(
            plan, cases=(case,), runtimes=runtimes, names={one.name: one.name for one in runtimes}
        )
        for problem in plan.problems:
            self.reporter.say(f"  {problem}")
        work.forget_old_runs()
        for runtime in runtimes:
            self._run_on(runtime, plan, work)
        self._require_tests()

    def result(self) -> OwnRun:
        """What was found so far."""
        plan = self.plan
        runtimes = list(dict.fromkeys(record.runtime for record in self.records))
        ordered = sorted(
            self.records, key=lambda one: (runtimes.index(one.runtime), release_order(one))
        )
        cells = [self.cells[record.release, record.runtime] for record in ordered]
        left = len(self.planned) - len(cells)
        stopped = (f"stopped: {left} cells were not run",) if left else ()
        stable = tuple(one.version for one in plan.stable) if plan else ()
        return OwnRun(
            tests=tuple(self._name(test) for test in self.options.tests),
            package=plan.package if plan else "",
            generated_at=now(),
            harness_commit=harness_commit(ROOT),
            cells=tuple(cells),
            intervals=intervals(self.records, self.cells, stable),
            failing=failing(self.records),
            problems=(*(plan.problems if plan else ()), *stopped),
        )

    def _name(self, test: str) -> str:
        """A test as seen from its project: without a path of this machine."""
        path, separator, rest = test.partition("::")
        project = self.options.project
        inside = Path(path).relative_to(project).as_posix()
        return f"{project.name if inside == '.' else inside}{separator}{rest}"

    def _with_requirements(self, runtime: Runtime) -> Runtime:
        return replace(runtime, extras=(*runtime.extras, *self.options.requirements))

    def _bench(self, runtime: Runtime, plan: Plan, work: Work) -> Bench:
        folder = work.plan.parent / "own" / runtime_folder(runtime.name)
        shutil.rmtree(folder, ignore_errors=True)
        bench = prepare_bench(
            plan, runtime, self.options.grid, Ledger(folder / "results"), {}, work, self.reporter
        )
        project = self.options.project
        return replace(
            bench,
            folder=folder / "cells",
            tests=self.options.arguments,
            paths=tuple(str(path) for path in self.options.paths),
            places={**bench.places, str(project): project.name},
        )

    def _run_on(self, runtime: Runtime, plan: Plan, work: Work) -> None:
        todo = tuple(
            PlannedCell(release=release, runtime=runtime.name, cases=plan.cases)
            for release in plan.releases
            if not release.unreachable
        )
        self.planned += [cell.name for cell in todo]
        bench = self._bench(runtime, plan, work)
        tried = {cell.release.version for cell in todo}
        phase = f"testing {len(todo)} cells, {bench.workers} at a time"
        with CellRunner(bench, self.reporter) as runner, self.reporter.cells(len(todo)):
            # The ends first: they tell soonest of a test that is not there.
            with self.reporter.phase(phase):
                for some in ((todo[:1] + todo[1:][-1:]), todo[1:-1]):
                    self._run(some, runner, bench)
                    self._require_tests()
            while self.options.grid.refine:
                more = refine_plan(plan, self.records, runtime.name, tried)
                if not more:
                    return
                tried |= {cell.release.version for cell in more}
                self.planned += [cell.name for cell in more]
                self.reporter.more(len(more))
                with self.reporter.phase(f"making boundaries exact: {len(more)} cells more"):
                    self._run(more, runner, bench)

    def _run(self, cells: Sequence[PlannedCell], runner: CellRunner, bench: Bench) -> None:
        try:
            runner.run(cells)
        finally:  # what was finished counts, whatever stopped the rest
            for cell in cells:
                self._take(cell, bench)

    def _take(self, cell: PlannedCell, bench: Bench) -> None:
        path = bench.ledger.file(cell.runtime, cell.release.key)
        if not path.exists():
            return
        (record,) = read_file(path)
        tests = bench.folder / f"{cell.release.key}.1.tests"
        self.records.append(record)
        self.cells[record.release, record.runtime] = own_cell(record, tests, bench.places)

    def _require_tests(self) -> None:
        """Insist that pytest found a test in some cell that it ran in.

        Raises:
            OptionsError: It ran, and found none.
        """
        reasons = {record.reason for record in self.records}
        ran = any(cell.tests for cell in self.cells.values())
        if not ran and Reason.NOT_SELECTED in reasons:
            names = ", ".join(self._name(test) for test in self.options.tests)
            raise OptionsError(
                f"pytest collects no test from {names}.",
                advice="See what there is: python -m pytest --collect-only TEST. Files are called "
                "test_*.py, functions test_*; a name behind :: has to be spelled as there.",
            )
