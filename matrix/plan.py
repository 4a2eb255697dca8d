"""The plan: which cells to run, made once and frozen for the run.

It is what the grid and the options ask for, minus what the ledger knows. As a file it is the
hand-over between the nox sessions, and between machines when a run is split into shards.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

import msgspec

from matrix.errors import CorruptFileError
from matrix.grid import Limits, Runtime
from matrix.ledger import is_settled
from matrix.records import Source
from matrix.releases import Release

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from checks.catalog import Case
    from matrix.records import Record

SECONDS_PER_CELL = 2.0
"""Expected cost of a cell beside its cases: its layer, and importing the release."""
SECONDS_PER_CASE = 0.15
SECONDS_PER_SLOW_CASE = {
    "compiled": 4.0,
    "true-scale": 2.2,
    "continuous-batching": 1.7,
    "assisted-decoding": 0.5,
}
"""Scenarios that take longer, as `seconds` of their results told."""


class PlannedCell(msgspec.Struct, frozen=True, kw_only=True):
    """One release on one runtime, and the cases that are not known of it."""

    release: Release
    runtime: str
    cases: tuple[str, ...]

    @property
    def name(self) -> str:
        """For messages and for the report: ``5.16.1 3.11/2.13.0``."""
        return f"{self.release.name} {self.runtime}"

    @property
    def expected_seconds(self) -> float:
        """Rough cost on one core, for balancing shards and saying how long it may take."""
        scenarios = (case.split("/")[1] for case in self.cases)
        cost = sum(SECONDS_PER_SLOW_CASE.get(name, SECONDS_PER_CASE) for name in scenarios)
        return SECONDS_PER_CELL + cost


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What one run does.

    Attributes:
        check_revision: Revision of the checks that it was made for.
        made_at: When it was made, ISO 8601 in UTC.
        names: How the user named each runtime -> its name with versions resolved.
        package: The package whose releases these are.
        runtimes: The runtimes chosen.
        releases: The releases asked for, as resolved.
        stable: Every stable release, in version order: what refinement may add.
        cases: Every case asked for, on the devices of this machine.
        absent: Cases asked for on devices that this machine lacks.
        cells: What to run.
        known: How many cells need nothing run.
        requested: Names of all cells asked for, run or known.
        limits: What a cell may take.
        stale_after_days: When a verdict on a moving ref is old.
        refine: Whether boundaries are made exact.
        left_out: A sentence for each runtime asked for that cannot exist.
    """

    check_revision: str
    made_at: str
    names: dict[str, str]
    package: str
    runtimes: tuple[Runtime, ...]
    releases: tuple[Release, ...]
    stable: tuple[Release, ...]
    cases: tuple[str, ...]
    absent: tuple[str, ...]
    cells: tuple[PlannedCell, ...]
    known: int
    requested: tuple[str, ...]
    limits: Limits
    stale_after_days: int
    refine: bool
    left_out: tuple[str, ...] = ()

    def cells_of(self, runtime: str) -> tuple[PlannedCell, ...]:
        """The cells to run on one runtime."""
        return tuple(cell for cell in self.cells if cell.runtime == runtime)

    def runtime(self, name: str) -> Runtime | None:
        """The chosen runtime of that name, or that the user called by it."""
        name = self.names.get(name, name)
        return next((one for one in self.runtimes if one.name == name), None)

    @property
    def problems(self) -> tuple[str, ...]:
        """What could not be reached or cannot be run, a line each."""
        unreachable = (
            f"{release.name}: unreachable: {release.unreachable}"
            for release in self.releases
            if release.unreachable
        )
        return (*unreachable, *self.left_out)


def split_cases(
    cases: Iterable[Case], devices: Sequence[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Ids of the cases on `devices`, and of those on devices that are not there."""
    present: list[str] = []
    absent: list[str] = []
    for case in cases:
        (present if case.device in devices else absent).append(case.id)
    return tuple(present), tuple(absent)


class Known:
    """What the ledgers know, ready to be asked."""

    def __init__(
        self, records: Iterable[Record], check_revision: str, *, any_status: bool = False
    ) -> None:
        """Index `records`; with `any_status` also those that are worth another try."""
        self._settled = {
            (_identity(record.source, record.release, record.commit), record.runtime, record.case)
            for record in records
            if record.provenance.check_revision == check_revision
            and (any_status or is_settled(record))
        }

    def missing(
        self, release: Release, runtime: str, cases: Sequence[str], *, always: bool = True
    ) -> tuple[str, ...]:
        """Those of `cases` of this cell that are not known.

        With `always`, a local path counts as unknown: what it holds may have changed.
        """
        if always and release.source is Source.PATH:
            return tuple(cases)
        identity = _identity(release.source, release.name, release.commit)
        return tuple(case for case in cases if (identity, runtime, case) not in self._settled)


def _identity(source: Source, name: str, commit: str | None) -> str:
    return f"commit {commit}" if source is Source.GIT and commit else name


def plan_cells(
    releases: Iterable[Release],
    runtimes: Iterable[Runtime],
    cases: Sequence[str],
    known: Known | None,
) -> tuple[tuple[PlannedCell, ...], int]:
    """Cells with something to run, and how many have nothing. `known` None: run everything."""
    cells: list[PlannedCell] = []
    settled = 0
    releases = tuple(releases)
    for runtime in runtimes:
        for release in releases:
            if release.unreachable:
                continue
            missing = known.missing(release, runtime.name, cases) if known else tuple(cases)
            if missing:
                cells.append(PlannedCell(release=release, runtime=runtime.name, cases=missing))
            else:
                settled += 1
    return tuple(cells), settled


def shard(cells: Sequence[PlannedCell], index: int, count: int) -> tuple[PlannedCell, ...]:
    """The cells of shard `index` of `count` (from 1), of about equal expected cost each.

    The dearest cells are dealt out first, each to the shard that has least so far; ties go by
    name, so that every machine deals alike. Cells keep their order in the plan.
    """
    loads = [(0.0, number) for number in range(1, count + 1)]
    mine: set[str] = set()
    for cell in sorted(cells, key=lambda cell: (-cell.expected_seconds, cell.name)):
        load, number = heapq.heappop(loads)
        heapq.heappush(loads, (load + cell.expected_seconds, number))
        if number == index:
            mine.add(cell.name)
    return tuple(cell for cell in cells if cell.name in mine)


def apart(cells: Sequence[PlannedCell], workers: int) -> Iterator[PlannedCell]:
    """`cells` in an order in which neighbours are not run at the same time.

    Neighbouring releases have most of their modules in common; what the one has compiled, the
    other can use only if it comes later.
    """
    stretch = -(-len(cells) // workers)
    for first in range(stretch):
        yield from cells[first::stretch]


def read_plan(path: Path) -> Plan:
    """Read a plan back.

    Raises:
        CorruptFileError: There is none, or it is not as `msgspec` wrote it.
    """
    try:
        return msgspec.json.decode(path.read_bytes(), type=Plan)
    except (OSError, msgspec.MsgspecError) as error:
        raise CorruptFileError(
            f"The plan {path} cannot be read: {error}",
            advice="Make it again: nox -s plan",
        ) from error
