"""What is new since the run before is found, told in a sentence, and explained."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from reports.changes import MOST_KEPT, Change, Kind, Said, compare, remembered
from reports.statements import statements
from tests.reports.factory import REVISION, cases, history, main_branch, provenance, record

if TYPE_CHECKING:
    from matrix.records import Record

AT = "2026-12-01T00:00:00Z"


def said(records: list[Record], revision: str = REVISION) -> Said:
    """What a run with these records said."""
    return Said(check_revision=revision, records=tuple(records), statements=statements(records))


def changes(before: list[Record], after: list[Record]) -> list[tuple[str, str, str]]:
    """Kind, release and cause of every change."""
    return [(c.kind, c.release, c.why) for c in compare(said(before), said(after), AT)]


def test_nothing_changes_by_itself() -> None:
    """The same records, no change."""
    records = history({"1.0": "prefix_lost", "1.1": "ok"})
    assert changes(records, records) == []


@pytest.mark.parametrize(
    ("before", "after", "kind"),
    [
        ("ok", "prefix_lost", Kind.NEWLY_AFFECTED),
        ("timeout", "prefix_lost", Kind.NEWLY_AFFECTED),
        ("prefix_lost", "stale_keys", Kind.OTHER_DEFECT),
        ("prefix_lost", "timeout", Kind.NEWLY_UNKNOWN),
        ("ok", "inconclusive", Kind.NEWLY_UNKNOWN),
        ("timeout", "ok", Kind.NEWLY_FIXED),
    ],
)
def test_the_kinds(before: str, after: str, kind: Kind) -> None:
    """Each way in which a verdict can change has its word."""
    assert [k for k, _, _ in changes([record(outcome=before)], [record(outcome=after)])] == [kind]


def test_a_new_release() -> None:
    """It is new if right, and newly affected if not; the cause is that it is new."""
    old = history({"1.0": "ok"})
    why = "A release that was not in the report before."
    assert changes(old, [*old, record("1.1")]) == [("new_release", "1.1", why)]
    assert changes(old, [*old, record("1.1", "crash")]) == [("newly_affected", "1.1", why)]


def test_a_release_that_is_gone() -> None:
    """It is told, so that nobody takes silence for health."""
    (change,) = compare(said(history({"1.0": "ok", "1.1": "ok"})), said([record("1.0")]), AT)
    assert (change.kind, change.release, change.after) == (Kind.GONE, "1.1", None)


def test_main_moved() -> None:
    """A ref that stands for another commit is the plainest cause."""
    before = [main_branch("crash")]
    after = [main_branch("ok", commit="f" * 40)]
    assert changes(before, after)[0][2] == "main stands for another commit now."


def test_other_checks() -> None:
    """If the checks have changed, the release need not have."""
    new = provenance(check_revision="f" * 12)
    (change,) = compare(
        said([record()]), said([record(outcome="crash", provenance=new)], "f" * 12), AT
    )
    assert change.why == "The checks have changed."


def test_other_packages() -> None:
    """What is installed beside a release can make the difference."""
    before = [record(provenance=provenance(packages="a"))]
    after = [record(outcome="crash", provenance=provenance(packages="b"))]
    assert changes(before, after)[0][2] == "Other packages were installed beside it."


def test_trouble_with_the_infrastructure() -> None:
    """A time-out is no news of the release."""
    (change,) = changes([record()], [record(outcome="timeout")])
    assert change[2] == "Trouble while measuring: ran out of time."


def test_the_same_of_everything_gave_another_result() -> None:
    """That is said plainly, since it points at the check."""
    assert changes([record()], [record(outcome="crash")])[0][2] == (
        "The same release, checks and packages gave another result."
    )


def test_more_ways_of_use() -> None:
    """A release can become affected because it was looked at more closely."""
    before = [record()]
    after = [record(), record(outcome="crash", scenario="left-padded")]
    assert changes(before, after)[0][2] == "Other ways of use were measured."


def test_the_gravest_come_first_and_the_newest_of_them() -> None:
    """Who reads two lines reads the two that matter."""
    before = history({"1.0": "ok", "1.1": "ok", "1.2": "crash"})
    after = history({"1.0": "crash", "1.1": "crash", "1.2": "ok", "1.3": "ok"})
    assert [(k, r) for k, r, _ in changes(before, after)] == [
        ("newly_affected", "1.1"),
        ("newly_affected", "1.0"),
        ("newly_fixed", "1.2"),
        ("new_release", "1.3"),
    ]


def test_the_sentence_names_release_model_and_both_verdicts() -> None:
    """It can stand alone in a feed."""
    (change,) = compare(said([record()]), said([record(outcome="prefix_lost")]), AT)
    assert change.text == (
        "transformers 1.0.0, Phi-3: affected by prefix lost, before: not affected."
    )


def test_changes_are_remembered_newest_first_and_not_for_ever() -> None:
    """A run that is reported twice does not double its changes."""
    one = compare(said([]), said(cases([record()], model=("phi3", "phimoe"))), AT)
    assert remembered(one, one) == one
    many = [change_at(f"2026-01-01T00:00:{i:03}Z") for i in range(MOST_KEPT + 5)]
    assert remembered(one, many)[:2] == one
    assert len(remembered(one, many)) == MOST_KEPT


def change_at(at: str) -> Change:
    """Some change of some run."""
    return Change(
        at=at, kind=Kind.GONE, release="1", model="phi3", before=None, after=None, text="", why=""
    )
