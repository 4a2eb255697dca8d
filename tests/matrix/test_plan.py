"""Plans, shards and gathering: what is run, and what became of what was asked for."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from matrix.errors import CorruptFileError
from matrix.gather import gather
from matrix.grid import Limits, Runtime
from matrix.plan import Known, Plan, PlannedCell, apart, plan_cells, read_plan, shard
from matrix.records import Reason, Source, Status
from matrix.releases import Release
from tests.matrix.factory import CASE, REVISION, record, release

if TYPE_CHECKING:
    from pathlib import Path

RUNTIME = Runtime(python="3.11", torch="2.13.0")
CUDA = CASE.replace("cpu", "cuda")
GONE = Release(version="main", source=Source.GIT, ref="main", unreachable="no such host")


def plan(*releases: Release, cells: tuple[PlannedCell, ...] = ()) -> Plan:
    """A plan for one case on one runtime."""
    return Plan(
        check_revision=REVISION,
        made_at="2026-01-01T00:00:00Z",
        names={RUNTIME.name: RUNTIME.name},
        package="transformers",
        runtimes=(RUNTIME,),
        releases=releases,
        stable=releases,
        cases=(CASE,),
        absent=(CUDA,),
        cells=cells,
        known=0,
        requested=(),
        limits=Limits(seconds_per_case=1, seconds_per_cell=1, memory_per_cell_mb=500, workers=1),
        stale_after_days=7,
        refine=True,
    )


def test_what_is_known_is_not_planned() -> None:
    """Under the same checks; what failed, or was measured by others, is."""
    records = [record("1.0"), record("2.0", "error"), record("3.0", revision="other")]
    cells, known = plan_cells(
        [release("1.0"), release("2.0"), release("3.0"), release("4.0"), GONE],
        [RUNTIME],
        [CASE],
        Known(records, REVISION),
    )
    assert [cell.release.version for cell in cells] == ["2.0", "3.0", "4.0"]
    assert known == 1


def test_only_the_missing_cases_of_a_cell_are_planned() -> None:
    """A new scenario does not run the old ones again."""
    other = CASE.replace("eager", "sdpa")
    (cell,), _ = plan_cells(
        [release("1.0")], [RUNTIME], [CASE, other], Known([record("1.0")], REVISION)
    )
    assert cell.cases == (other,)


def test_a_commit_is_known_by_whatever_ref_it_was_measured() -> None:
    """Main and a branch may stand for the same commit."""
    measured = record("1.0.dev0", ref="main", commit="c" * 40)
    branch = Release(version="x", source=Source.GIT, ref="git:u@x", commit="c" * 40)
    assert Known([measured], REVISION).missing(branch, RUNTIME.name, [CASE]) == ()


def test_a_local_path_is_always_run() -> None:
    """What it holds may have changed."""
    path = Release(version="path:x", source=Source.PATH, ref="path:x", path="/x")
    known = Known([], REVISION)
    assert known.missing(path, RUNTIME.name, [CASE]) == (CASE,)


cells_of_any_size = st.lists(st.integers(1, 60), min_size=1, max_size=40).map(
    lambda sizes: tuple(
        PlannedCell(release=release(f"{n}.0"), runtime=RUNTIME.name, cases=(CASE,) * size)
        for n, size in enumerate(sizes)
    )
)


@given(cells_of_any_size, st.integers(1, 8))
def test_shards_share_the_plan_out(cells: tuple[PlannedCell, ...], count: int) -> None:
    """Every cell is in exactly one shard, and no shard has a cell more than it must."""
    shards = [shard(cells, index, count) for index in range(1, count + 1)]
    together = [cell.name for cell in itertools.chain(*shards)]
    assert sorted(together) == sorted(cell.name for cell in cells)
    loads = [sum(cell.expected_seconds for cell in one) for one in shards]
    assert max(loads) - min(loads) <= max(cell.expected_seconds for cell in cells)
    assert shard(cells, 1, count) == shards[0]


def test_gathering_says_what_was_not_run() -> None:
    """An unreachable ref, a missing device, a lost shard: each with its reason."""
    gathered = gather([record("1.0")], [], plan(release("1.0"), release("2.0"), GONE))
    reasons = {(r.release, r.case): (r.status, r.reason) for r in gathered.records}
    assert reasons == {
        ("1.0", CASE): (Status.OK, None),
        ("1.0", CUDA): (Status.NOT_RUN, Reason.NO_DEVICE),
        ("2.0", CASE): (Status.NOT_RUN, Reason.NOT_SELECTED),
        ("2.0", CUDA): (Status.NOT_RUN, Reason.NO_DEVICE),
        ("main", CASE): (Status.NOT_RUN, Reason.UNREACHABLE),
        ("main", CUDA): (Status.NOT_RUN, Reason.NO_DEVICE),
    }


def test_gathering_prefers_the_checks_of_the_plan_and_then_the_local_record() -> None:
    """An outdated record does not hide a current one, however new it is."""
    old = record("1.0", "ok", revision="old", started_at="2027-01-01T00:00:00Z")
    new = record("1.0", "lost")
    for committed, local in (([old], [new]), ([new], [old])):
        (kept,) = gather(committed, local, plan()).records
        assert kept is new
    gathered = gather([record("1.0", "ok")], [new], plan())
    assert gathered.records == (new,)
    assert gathered.local == (("1.0", RUNTIME.name),)


def test_a_ref_that_moved_on_shows_its_newest_commit_only() -> None:
    """The record of the old commit stays in the ledger, but is no answer about `main`."""
    old = record("1.dev0", ref="main", commit="a" * 40, started_at="2026-01-01T00:00:00Z")
    new = record("1.dev0", ref="main", commit="b" * 40, started_at="2026-01-02T00:00:00Z")
    assert gather([old, new], [], None).records == (new,)


def test_a_plan_comes_back_as_it_was(tmp_path: Path) -> None:
    """It is the hand-over between sessions and machines."""
    cell = PlannedCell(release=release("1.0"), runtime=RUNTIME.name, cases=(CASE,))
    written = plan(release("1.0"), GONE, cells=(cell,))
    path = tmp_path / "plan.json"
    path.write_bytes(msgspec.json.encode(written))
    assert read_plan(path) == written


def test_a_plan_that_is_none_is_named(tmp_path: Path) -> None:
    """With what to do about it."""
    with pytest.raises(CorruptFileError, match=r"plan\.json") as caught:
        read_plan(tmp_path / "plan.json")
    assert "nox -s plan" in caught.value.advice


def test_neighbours_are_not_run_at_the_same_time() -> None:
    """Each worker goes along a stretch of the releases of its own."""
    cells = [
        PlannedCell(release=release(f"{number}.0"), runtime="3.11/2.0", cases=())
        for number in range(7)
    ]
    names = [cell.release.version[0] for cell in apart(cells, 2)]
    assert names == ["0", "4", "1", "5", "2", "6", "3"]
    assert list(apart([], 2)) == []
