"""Which recorded cells are measured again on a new machine."""

from __future__ import annotations

from matrix.canary import MOST_CELLS, choose_again, disagreements
from tests.matrix.factory import CASE, REVISION, record, release
from tests.matrix.test_plan import RUNTIME, plan

STABLE = tuple(release(f"{number}.0") for number in range(1, 11))


def test_the_cells_beside_the_boundaries_are_chosen_the_newest_first() -> None:
    """A different result would matter most there."""
    outcomes = ["lost", "ok", "ok", "mask", "mask", "mask", "lost", "lost", "ok", "ok"]
    records = [record(r.version, o) for r, o in zip(STABLE, outcomes, strict=True)]
    chosen = choose_again(plan(*STABLE), records, RUNTIME.name)
    assert [cell.release.version for cell in chosen] == ["9.0", "8.0", "7.0", "6.0"][:MOST_CELLS]
    assert {cell.cases for cell in chosen} == {(CASE,)}


def test_nothing_is_chosen_without_a_boundary_or_from_other_checks() -> None:
    """Nothing to compare with, or nothing that would have to come out the same."""
    same = [record("1.0"), record("2.0")]
    outdated = [record("1.0", revision="old"), record("2.0", "lost", revision="old")]
    assert choose_again(plan(*STABLE), [*same, *outdated], RUNTIME.name) == ()


def test_only_conclusive_records_of_the_same_checks_can_disagree() -> None:
    """A crash here says nothing about the record."""
    known = [record("1.0"), record("2.0"), record("3.0", revision="old")]
    measured = [record("1.0", "lost"), record("2.0", "error"), record("3.0", "lost")]
    (difference,) = disagreements(known, measured)
    assert difference.known is known[0]
    assert difference.known.provenance.check_revision == REVISION
