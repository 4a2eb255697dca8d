"""A specifier lets through what was measured and is right."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from hypothesis import given
from packaging.specifiers import SpecifierSet

from reports.advice import Choice, advise
from reports.findings import conclude
from tests.reports.factory import RUN, history, main_branch, record
from tests.reports.strategies import histories

if TYPE_CHECKING:
    from matrix.records import Record


def choose(records: list[Record], *offered: str) -> Choice | None:
    """The choice for Phi-3."""
    findings = conclude(records, msgspec.structs.replace(RUN, releases=offered))
    return advise("phi3", findings.statements, findings.releases).choice


def test_the_newest_right_releases_are_chosen() -> None:
    """Bounded above by what was measured: a later release is not known to be right."""
    choice = choose(history({"1.0": "ok", "1.1": "prefix_lost", "1.2": "ok", "1.3": "ok"}), "1.4")
    assert choice is not None
    assert choice.specifier == ">=1.2,<=1.3"
    assert choice.still_wrong == ()


def test_a_release_in_doubt_is_left_out() -> None:
    """It is excluded by name; a wrong one ends the stretch."""
    outcomes = {"1.0": "ok", "1.1": "crash", "1.2": "ok", "1.3": "timeout", "1.4": "ok"}
    choice = choose(history(outcomes), "1.3.1")
    assert choice is not None
    assert choice.specifier == ">=1.2,<=1.4,!=1.3"
    assert choice.untested == ("1.3.1",)


def test_where_none_is_right_in_every_way_the_best_is_named_as_such() -> None:
    """What is still wrong in it is said."""
    records = [
        *history({"1.0": "prefix_lost", "1.1": "ok"}),
        *history({"1.0": "crash", "1.1": "crash"}, scenario="left-padded"),
    ]
    choice = choose(records)
    assert choice is not None
    assert choice.specifier == "==1.1"
    assert choice.still_wrong == ("left-padded",)


def test_a_specifier_bridges_no_minor_release_that_was_not_tested() -> None:
    """It would let through what nobody knows."""
    choice = choose(history({"1.1": "ok", "1.5": "ok", "1.6": "ok"}))
    assert choice is not None
    assert choice.specifier == ">=1.5,<=1.6"


def test_what_is_wrong_beyond_the_core_is_said_beside() -> None:
    """It does not keep a release from being recommended; whoever uses it is told."""
    records = [record("1.0"), record("1.0", "stale_keys", scenario="chunked-prefill")]
    choice = choose(records)
    assert choice is not None
    assert (choice.specifier, choice.still_wrong) == ("==1.0", ())
    assert choice.also_wrong == ("chunked-prefill",)


def test_without_a_decided_release_nothing_is_recommended() -> None:
    """Unknown is not a recommendation, and neither is a moving ref."""
    assert choose(history({"1.0": "timeout"})) is None
    assert choose([main_branch("ok")]) is None


def test_each_way_of_use_has_its_own_stretch() -> None:
    """Who does not pad may run what is wrong for those who do."""
    records = [record("1.0", "ok"), record("1.0", "wrong_mask", scenario="left-padded")]
    findings = conclude(records, RUN)
    uses = advise("phi3", findings.statements, findings.releases).scenarios
    assert [(use.scenario, use.choice and use.choice.specifier) for use in uses] == [
        ("decode-crossing", "==1.0"),
        ("left-padded", None),
    ]


@given(histories())
def test_nothing_wrong_and_nothing_in_doubt_is_let_through(records: list[Record]) -> None:
    """Every release that passes is right, or untested and named; what is wrong is said."""
    findings = conclude(records, RUN)
    said = {s.transformers: s for s in findings.statements}
    choice = advise("phi3", findings.statements, findings.releases).choice
    if choice is None:
        assert not any(s.statement.right for s in said.values())
        return
    allowed = set(SpecifierSet(choice.specifier).filter(findings.releases, prereleases=True))
    assert {choice.first, choice.last} <= allowed
    for name in allowed - set(choice.untested):
        assert said[name].statement != "under_investigation"
        assert set(said[name].affected) <= set(choice.still_wrong)
    if any(s.statement.right for s in said.values()):
        assert choice.still_wrong == ()
