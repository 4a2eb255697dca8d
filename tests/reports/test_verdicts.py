"""Intervals and statements say what the records say, and nothing more."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given

from checks.catalog import SCENARIOS
from matrix.history import axis_of
from matrix.records import Defect, Record, Status, release_order
from reports import words
from reports.statements import Statement, statements
from reports.verdicts import Verdict, current, intervals, known_releases, release_key, version
from reports.words import CORE_SCENARIOS
from tests.reports.factory import (
    REVISION,
    cases,
    history,
    main_branch,
    provenance,
    record,
)
from tests.reports.strategies import histories


def verdicts(records: list[Record]) -> dict[str, str]:
    """What is said of each release."""
    return {s.release: str(s.statement) for s in statements(records)}


class TestIntervals:
    """Runs of releases on one axis."""

    def test_several_intervals_with_different_defects_stay_apart(self) -> None:
        """Nothing assumes one first bad and one first good release."""
        records = history(
            {
                "1.0": "ok",
                "1.1": "stale_keys",
                "1.2": "stale_keys",
                "1.3": "prefix_lost",
                "1.4": "ok",
                "1.5": "prefix_lost",
            }
        )
        told = [
            (i.status, i.defect, i.first, i.last, i.after, i.before) for i in intervals(records)
        ]
        assert told == [
            (Status.OK, None, "1.0", "1.0", None, "1.1"),
            (Status.AFFECTED, Defect.STALE_KEYS, "1.1", "1.2", "1.0", "1.3"),
            (Status.AFFECTED, Defect.PREFIX_LOST, "1.3", "1.3", "1.2", "1.4"),
            (Status.OK, None, "1.4", "1.4", "1.3", "1.5"),
            (Status.AFFECTED, Defect.PREFIX_LOST, "1.5", "1.5", "1.4", None),
        ]

    def test_a_gap_at_a_boundary_is_counted(self) -> None:
        """Releases that nobody tested, or in vain, lie between an interval and its neighbour."""
        records = history({"1.0": "ok", "1.1": "timeout", "1.4": "prefix_lost"})
        first, last = intervals(records, offered=["1.2", "1.3", "2.0"])
        assert (first.untested_between, last.untested_between) == (3, 3)

    def test_a_gap_inside_is_named_and_not_joined(self) -> None:
        """A release without an answer between two equal ones is unknown, not equal."""
        (only,) = intervals(history({"1.0": "ok", "1.1": "inconclusive", "1.2": "ok"}), ["1.0.1"])
        assert only.unknown == ("1.0.1", "1.1")
        assert only.untested_between == 0

    def test_unsupported_and_not_run_decide_nothing(self) -> None:
        """Only `ok` and `affected` make intervals."""
        assert intervals(history({"1.0": "no_model", "1.1": "no_device", "1.2": "timeout"})) == ()

    def test_moving_refs_have_no_interval(self) -> None:
        """`main` has no place in the order of releases."""
        assert intervals([main_branch("prefix_lost")]) == ()

    @given(histories())
    def test_every_answer_lies_in_exactly_one_interval(self, records: list[Record]) -> None:
        """And no release without an answer lies in any."""
        found = defaultdict(list)
        for interval in intervals(records):
            found[interval.axis].append(interval)
        for one in records:
            here = version(one.transformers)
            covering = [
                i
                for i in found[axis_of(one)]
                if version(i.first) <= here <= version(i.last) and one.transformers not in i.unknown
            ]
            expected = [(one.status, one.defect)] if one.status.conclusive else []
            assert [(i.status, i.defect) for i in covering] == expected

    @given(histories())
    def test_neighbours_are_the_intervals_beside(self, records: list[Record]) -> None:
        """`after` and `before` are the nearest releases with another answer."""
        found = defaultdict(list)
        for interval in intervals(records):
            found[interval.axis].append(interval)
        for row in found.values():
            assert [i.after for i in row] == [None, *(i.last for i in row[:-1])]
            assert [i.before for i in row] == [*(i.first for i in row[1:]), None]
            for left, right in pairwise(row):
                assert (left.status, left.defect) != (right.status, right.defect)
                assert version(left.last) < version(right.first)


class TestStatements:
    """What is said of a release."""

    @pytest.mark.parametrize(
        ("outcomes", "expected"),
        [
            (["ok"], "not_affected"),
            (["prefix_lost"], "affected"),
            (["timeout"], "under_investigation"),
            (["inconclusive"], "under_investigation"),
            (["no_device"], "under_investigation"),
            (["prefix_lost", "ok"], "fixed"),
            (["prefix_lost", "ok", "stale_keys", "ok"], "fixed"),
            (["ok", "prefix_lost"], "affected"),
        ],
    )
    def test_the_last_release_of_a_history(self, outcomes: list[str], expected: str) -> None:
        """Fixed means that an earlier release was affected; unknown stays unknown."""
        records = history({f"1.{i}": outcome for i, outcome in enumerate(outcomes)})
        assert list(verdicts(records).values())[-1] == expected

    def test_the_control_alone_decides_nothing(self) -> None:
        """A release that was only tried below the boundary is not called right."""
        assert verdicts([record("1.0", "ok", scenario="below-boundary")]) == {
            "1.0": "under_investigation"
        }

    def test_a_way_of_use_that_was_wrong_must_be_measured_to_be_fixed(self) -> None:
        """Measuring less than before does not fix anything."""
        records = [
            record("1.0", "prefix_lost", scenario="left-padded"),
            record("1.0", "ok"),
            record("1.1", "ok"),
        ]
        assert verdicts(records)["1.1"] == "under_investigation"
        assert statements(records)[-1].undecided == ("left-padded",)

    def test_a_case_tried_in_vain_leaves_the_release_undecided(self) -> None:
        """One case without an answer is enough, unless another case is affected."""
        assert verdicts([record(), record(outcome="timeout", scenario="left-padded")]) == {
            "1.0.0": "under_investigation"
        }
        assert verdicts([record(outcome="crash"), record(outcome="timeout", device="cuda")]) == {
            "1.0.0": "affected"
        }

    def test_a_runtime_that_is_too_old_is_outvoted_by_one_that_is_not(self) -> None:
        """The same case with an answer on another torch is decided."""
        records = [record(), record(outcome="torch_too_old", torch="2.2.0+cpu")]
        assert verdicts(records) == {"1.0.0": "not_affected"}

    def test_a_device_that_is_not_here_does_not_count(self) -> None:
        """`not_run` and `unsupported` are in no number."""
        (statement,) = statements([record(), record(outcome="no_device", device="cuda")])
        assert statement.statement is Verdict.NOT_AFFECTED
        assert (statement.conclusive, statement.inconclusive) == (1, 0)

    def test_a_release_without_the_model_gets_no_statement(self) -> None:
        """There is nothing to say about what does not exist."""
        assert verdicts(history({"1.0": "no_model", "1.1": "ok"})) == {"1.1": "not_affected"}

    def test_main_comes_after_every_release(self) -> None:
        """`main` is fixed if any release was affected, whatever its version calls itself."""
        records = [*history({"1.0": "prefix_lost"}), main_branch("ok")]
        assert verdicts(records) == {"1.0": "affected", "main": "fixed"}

    def test_the_core_decides_and_the_rest_is_told_beside(self) -> None:
        """A release is fixed that is right in the core; what else is wrong is not hidden."""
        records = [
            *history({"1.0": "prefix_lost", "1.1": "ok"}),
            *history({"1.0": "ok", "1.1": "crash"}, scenario="crop-back"),
            record("1.1", "ok", scenario="beam-search"),
            record("1.1", "timeout", scenario="compiled"),
        ]
        last = statements(records)[-1]
        assert last.statement is Verdict.FIXED
        assert last.also_affected == ("crop-back",)
        assert last.also_right == ("beam-search",)
        assert last.also_undecided == ("compiled",)

    def test_somebody_else_s_checks_are_all_core(self) -> None:
        """Where no core scenario was measured, what was measured decides."""
        assert verdicts([record(outcome="crash", scenario="my-own-test")]) == {"1.0.0": "affected"}

    def test_models_are_told_apart(self) -> None:
        """What is wrong for one model says nothing about another."""
        records = [record(outcome="crash"), record(model="phimoe")]
        assert [(s.model, s.statement) for s in statements(records)] == [
            ("phi3", Verdict.AFFECTED),
            ("phimoe", Verdict.NOT_AFFECTED),
        ]

    def test_defects_are_told_with_their_ways_of_use(self) -> None:
        """Each defect names the scenarios that showed it."""
        (statement,) = statements(
            [record(outcome="stale_keys"), record(outcome="wrong_mask", scenario="left-padded")]
        )
        assert statement.defects == {
            Defect.STALE_KEYS: ("decode-crossing",),
            Defect.WRONG_MASK: ("left-padded",),
        }

    @given(histories())
    def test_right_is_never_said_without_a_crossing_that_agreed(
        self, records: list[Record]
    ) -> None:
        """And never where anything was affected or tried in vain."""
        by_release: defaultdict[str, list[Record]] = defaultdict(list)
        for one in records:
            by_release[one.release].append(one)
        for statement in statements(records):
            seen = {one.status for one in by_release[statement.release]}
            affected = Status.AFFECTED in seen
            assert affected == (statement.statement is Verdict.AFFECTED)
            if statement.statement.right:
                assert not seen & {Status.ERROR, Status.INCONCLUSIVE}
                assert any(
                    one.status is Status.OK and one.scenario != "below-boundary"
                    for one in by_release[statement.release]
                )

    @given(histories())
    def test_the_order_of_records_does_not_matter(self, records: list[Record]) -> None:
        """Verdicts are a function of the set of records."""
        again = sorted(records, key=repr)
        assert statements(records) == statements(again)
        assert intervals(records) == intervals(again)


class TestCurrent:
    """Which records count."""

    def test_records_of_other_checks_are_left_out(self) -> None:
        """Two revisions of the checks may measure differently."""
        old = record("1.0", "prefix_lost", provenance=provenance(check_revision="f" * 12))
        assert current([old, record("1.1")], REVISION) == (record("1.1"),)

    def test_the_latest_record_of_a_case_counts(self) -> None:
        """A cell that was run again is told by its last run."""
        old = record("1.0", "timeout", provenance=provenance(started_at="2026-01-01T00:00:00Z"))
        new = record("1.0", "ok", provenance=provenance(started_at="2026-02-01T00:00:00Z"))
        assert current([new, old], REVISION) == (new,)

    def test_releases_are_in_the_order_of_versions(self) -> None:
        """1.10 comes after 1.9, and refs behind both."""
        records = [main_branch(), record("1.10"), record("1.9")]
        assert [r.release for r in current(records, REVISION)] == ["1.9", "1.10", "main"]


def test_the_core_is_that_of_the_catalog() -> None:
    """The checks and the report mean the same by core, and know the same scenarios."""
    assert {name for name, entry in SCENARIOS.items() if entry.core} == CORE_SCENARIOS
    assert list(SCENARIOS) == list(words.SCENARIOS)


def test_the_order_of_releases_is_the_harness_s() -> None:
    """`release_key` is `release_order`, only quicker."""
    for one in (record("1.10.0"), main_branch(), record("2.0.0rc1")):
        assert release_key(one) == release_order(one)


def test_releases_that_were_only_offered_are_known() -> None:
    """What the index offers and nobody tested is known, so that it can be missed."""
    assert known_releases([record("1.10")], ["1.9"]) == ("1.9", "1.10")


def test_statements_survive_json() -> None:
    """What is published can be read back."""
    told = statements(cases(history({"1.0": "prefix_lost"}), attention=("eager", "sdpa")))
    assert msgspec.json.decode(msgspec.json.encode(told), type=tuple[Statement, ...]) == told
