"""Equal histories are told once, in as few words as are true."""

from __future__ import annotations

from hypothesis import given

from matrix.history import Axis, axis_of
from matrix.records import Record, Status
from reports.condense import condense
from reports.picture import MARGIN, WIDTH, picture
from reports.stories import Common, common, stories, where
from reports.verdicts import intervals, known_releases
from tests.reports.factory import cases, history, record
from tests.reports.strategies import histories

NOTHING = Common(place=None, runtime=None)


def axis(**changes: str) -> Axis:
    """The axis of a record."""
    return axis_of(record(**changes))


def test_equal_histories_share_a_story() -> None:
    """Two backends with the same intervals are one story; another history is another."""
    records = [
        *cases(history({"1.0": "ok", "1.1": "crash"}), attention=("eager", "sdpa")),
        *history({"1.0": "ok", "1.1": "ok"}, scenario="left-padded"),
    ]
    told = stories(intervals(records))
    assert [(story.scenarios, len(story.axes)) for story in told] == [
        (("decode-crossing",), 2),
        (("left-padded",), 1),
    ]


def test_affected_stories_come_first() -> None:
    """What is wrong is read before what is right."""
    records = [record(scenario="below-boundary"), record(outcome="crash", scenario="left-padded")]
    assert [s.scenarios for s in stories(intervals(records))] == [
        ("left-padded",),
        ("below-boundary",),
    ]


def test_a_full_product_is_told_as_one() -> None:
    """Two backends on two devices, all of them."""
    axes = [axis(attention=a, device=d) for a in ("eager", "sdpa") for d in ("cpu", "cuda")]
    assert where(axes, Common(place=None, runtime="shared")) == (
        "eager and sdpa · cpu float32 and cuda float32"
    )


def test_anything_less_is_told_one_by_one() -> None:
    """Never claim a combination that is not among the axes."""
    axes = [axis(attention="eager"), axis(attention="sdpa", device="cuda")]
    assert where(axes, Common(place=None, runtime="shared")) == (
        "eager · cpu float32; sdpa · cuda float32"
    )


def test_what_all_share_is_said_once() -> None:
    """And only if all share it."""
    assert common([axis(), axis(attention="sdpa")]).words == (
        "cpu float32 · Python 3.11, torch 2.13.0"
    )
    assert common([axis(), axis(device="cuda")]).place is None


def test_a_condensed_way_of_use_is_its_worst_case() -> None:
    """Affected anywhere is affected; in doubt anywhere is in doubt."""
    records = [
        record("1.0", "ok"),
        record("1.0", "crash", attention="sdpa"),
        record("1.1", "ok"),
        record("1.1", "timeout", attention="sdpa"),
        record("1.2", "ok"),
        record("1.2", "no_backend", attention="sdpa"),
    ]
    assert {(r.transformers, r.status) for r in condense(records)} == {
        ("1.0", Status.AFFECTED),
        ("1.1", Status.ERROR),
        ("1.2", Status.OK),
    }


@given(histories())
def test_stories_tell_every_interval_once(records: list[Record]) -> None:
    """Grouping loses nothing and invents nothing."""
    found = intervals(records)
    told = [
        (a, interval.outcome)
        for story in stories(found)
        for a in story.axes
        for interval in story.intervals
    ]
    assert sorted(told, key=repr) == sorted(((i.axis, i.outcome) for i in found), key=repr)


@given(histories())
def test_bars_cover_the_decided_releases_and_no_other(records: list[Record]) -> None:
    """A release without an answer is never painted."""
    releases = known_releases(records)
    told = stories(intervals(records))
    drawing = picture(told, releases, NOTHING)
    if drawing is None:
        assert not any(r.status.conclusive for r in records)
        return
    step = (WIDTH - 2 * MARGIN) / len(releases)
    for story, row in zip(told, drawing.rows, strict=True):
        decided = {
            r.transformers for r in records if axis_of(r) in story.axes and r.status.conclusive
        }
        painted = {
            name
            for index, name in enumerate(releases)
            for bar in row.bars
            if bar.x <= MARGIN + (index + 0.3) * step < bar.x + bar.width
        }
        assert painted == decided
