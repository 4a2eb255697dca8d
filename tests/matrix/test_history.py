"""Histories and refinement: any number of changes, in both directions, with gaps."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from matrix.history import axis_of, histories, runs, split_by_revision
from matrix.records import Status
from matrix.refine import RUN_ALL, next_releases
from tests.matrix.factory import OUTCOMES, history, record

outcomes = st.lists(st.sampled_from(sorted(OUTCOMES)), max_size=30)


def test_a_history_may_change_several_times() -> None:
    """Each run knows the tested releases on both sides of it."""
    found = runs(history("lost", "ok", "ok", "mask", "lost", "ok"))
    assert [(run.first, run.last, run.after, run.before) for run in found] == [
        ("1.0", "1.0", None, "2.0"),
        ("2.0", "3.0", "1.0", "4.0"),
        ("4.0", "4.0", "3.0", "5.0"),
        ("5.0", "5.0", "4.0", "6.0"),
        ("6.0", "6.0", "5.0", None),
    ]


def test_what_is_not_conclusive_belongs_to_no_run() -> None:
    """Between equals it is named inside the run; at a change it is in the gap."""
    found = runs(history("ok", "error", "ok", "unclear", "lost", "unsupported"))
    assert [(run.first, run.last, run.unknown) for run in found] == [
        ("1.0", "3.0", ("2.0",)),
        ("5.0", "5.0", ()),
    ]


@given(outcomes)
def test_runs_hold_every_conclusive_record_once_and_in_order(names: list[str]) -> None:
    """Whatever the history, runs partition what is conclusive, and neighbours differ."""
    records = history(*names)
    found = runs(records)
    assert [r for run in found for r in run.records] == [r for r in records if r.status.conclusive]
    for left, right in pairwise(found):
        assert (left.status, left.defect) != (right.status, right.defect)
        assert left.before == right.first
        assert right.after == left.last


@given(outcomes)
def test_refinement_asks_for_nothing_when_all_is_recorded(names: list[str]) -> None:
    """A boundary between neighbours is exact, and one around a gap cannot be made so."""
    records = history(*names)
    releases = [r.transformers for r in records]
    assert next_releases(histories(records), releases) == {}


@given(
    st.lists(st.sampled_from(["ok", "lost", "mask", "error"]), min_size=2, max_size=60), st.data()
)
def test_refinement_ends_with_exact_boundaries(truth: list[str], data: st.DataObject) -> None:
    """From any start, running what is asked for ends, and leaves no boundary with an unrun gap."""
    releases = [f"{number}.0" for number in range(1, len(truth) + 1)]
    of = dict(zip(releases, truth, strict=True))
    known = set(data.draw(st.lists(st.sampled_from(releases), min_size=1, unique=True)))
    for _ in range(len(truth) + 1):
        by_axis = histories([record(release, of[release]) for release in known])
        asked = {
            release for chosen in next_releases(by_axis, releases).values() for release in chosen
        }
        if not asked:
            break
        assert not asked & known
        known |= asked
    for by_axis in (histories([record(release, of[release]) for release in known]),):
        for one in by_axis.values():
            for run in runs(one)[:-1]:
                low, high = releases.index(run.last), releases.index(str(run.before))
                assert set(releases[low : high + 1]) <= known


def test_a_wide_gap_is_halved_and_a_narrow_one_run_whole() -> None:
    """Forty releases between two that differ do not all run at once."""
    releases = [f"{number}.0" for number in range(1, 43)]
    wide = histories([record("1.0", "ok"), record("42.0", "lost")])
    (chosen,) = next_releases(wide, releases).values()
    assert chosen == ("22.0",)
    narrow = histories([record("1.0", "ok"), record(f"{RUN_ALL + 2}.0", "lost")])
    (chosen,) = next_releases(narrow, releases).values()
    assert len(chosen) == RUN_ALL


def test_refinement_goes_along_each_axis_by_itself() -> None:
    """Two runtimes that change at different releases ask for different ones."""
    records = [
        record("1.0", "ok"),
        record("3.0", "lost"),
        record("1.0", "ok", torch="2.9.1"),
        record("3.0", "ok", torch="2.9.1"),
    ]
    asked = next_releases(histories(records), ["1.0", "2.0", "3.0"])
    assert {axis.torch: chosen for axis, chosen in asked.items()} == {"2.13.0": ("2.0",)}


def test_moving_refs_are_no_part_of_a_history() -> None:
    """`main` has no place in the order of releases."""
    assert histories([record("1.0.dev0", ref="main", commit="a" * 40)]) == {}


def test_of_two_records_of_a_release_the_later_counts() -> None:
    """Whatever order they come in."""
    early = record("1.0", "ok", started_at="2026-01-01T00:00:00Z")
    late = record("1.0", "lost", started_at="2026-01-02T00:00:00Z")
    for order in ((early, late), (late, early)):
        assert histories(order) == {axis_of(late): (late,)}


def test_patches_of_python_and_builds_of_torch_share_an_axis() -> None:
    """`3.11.7` and `3.11.9`, `+cpu` and `+cu130` are one runtime."""
    one = axis_of(record("1.0", python="3.11.7", torch="2.13.0+cpu"))
    other = axis_of(record("1.0", python="3.11.9", torch="2.13.0+cu130"))
    assert one == other


def test_versions_sort_as_versions() -> None:
    """4.9 comes before 4.10."""
    (found,) = histories([record("4.10"), record("4.9")]).values()
    assert [r.transformers for r in found] == ["4.9", "4.10"]


def test_revisions_of_the_checks_are_kept_apart() -> None:
    """Old records are outdated, not wrong, and never share a list with new ones."""
    old, new = record("1.0", revision="old"), record("2.0", revision="new")
    assert split_by_revision([old, new], "new") == ([new], [old])
    assert new.status is Status.OK
