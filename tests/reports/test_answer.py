"""The answer names what was measured: affected, fixed, by what, in which way of use, and when."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from hypothesis import given

from matrix.records import Source
from reports.build import build
from reports.findings import conclude
from reports.spans import sightings, spans
from tests.reports.factory import RUN, cases, history, main_branch, provenance, record
from tests.reports.strategies import histories

if TYPE_CHECKING:
    from matrix.records import Record
    from reports.run import RunInfo
    from reports.view import View


def view(records: list[Record], **changes: object) -> View:
    """The view of records in the run of the tests."""
    run: RunInfo = msgspec.structs.replace(RUN, **changes)
    return build(conclude(records, run), run)


def test_one_interval_with_a_fix() -> None:
    """Affected releases, the defect, the way of use, the first fixed release, the newest."""
    told = view(history({"1.0": "ok", "1.1": "prefix_lost", "1.2": "prefix_lost", "1.3": "ok"}))
    assert told.headline == "Affected: 1.1 to 1.2; fixed in 1.3"
    assert told.answer == (
        (
            "In transformers 1.1 to 1.2, Phi-3 loses the prefix when a sequence grows across the"
            " LongRoPE boundary (decode-crossing)."
        ),
        "1.3 is the first fixed release.",
    )
    assert told.tone == "good"


def test_two_intervals_are_told_as_two() -> None:
    """Several intervals and defects are told as what they are, the newest first."""
    told = view(
        history({"1.0": "stale_keys", "1.1": "ok", "1.2": "prefix_lost", "1.3": "ok", "1.4": "ok"})
    )
    assert told.headline == "Affected: 1.0 and 1.2; fixed in 1.3"
    assert "In transformers 1.2, Phi-3 loses the prefix" in told.answer[0]
    assert "; in 1.0 it keeps stale keys (decode-crossing)." in told.answer[0]
    assert told.answer[1] == (
        "1.3 is the first fixed release, and 1.4, the newest measured, is fixed too."
    )


def test_nothing_fixed_yet() -> None:
    """No release is called fixed that was not measured."""
    told = view(history({"1.0": "ok", "1.1": "prefix_lost"}))
    assert told.headline == "Affected: 1.1, not fixed yet"
    assert told.answer[1] == "No fixed release has been measured: 1.1 is still affected."
    assert told.tone == "bad"


def test_a_gap_before_the_fix_is_said() -> None:
    """With releases of which nothing is known in between, the fix may be one of those."""
    told = view(history({"1.0": "prefix_lost", "1.1": "timeout", "1.2": "ok"}), releases=("1.1.1",))
    assert "1.2 is the first release measured as fixed (2 releases before it not decided)." in (
        told.answer
    )
    assert told.headline == "Affected: 1.0; fixed by 1.2"
    assert told.measured.endswith("conclusive; 2 of 4 known releases have no answer.")


def test_a_range_bridges_no_minor_release() -> None:
    """Two affected releases far apart are two, and what lies between is nobody's guess."""
    told = view(history({"4.41.2": "stale_keys", "5.16.1": "prefix_lost", "5.24.0": "ok"}))
    assert told.headline == "Affected: 4.41.2 and 5.16.1; fixed by 5.24.0"
    assert told.answer[1] == "5.24.0 is the first release measured as fixed."
    told = view(history({"4.56.2": "crash", "4.57.0": "crash", "5.0.1": "crash", "5.1.0": "ok"}))
    assert told.headline == "Affected: 4.56.2 to 5.0.1; fixed in 5.1.0"


def test_undecided_releases_at_the_end_are_said() -> None:
    """The newest release is not passed over because nothing is known of it."""
    told = view(history({"1.0": "prefix_lost", "1.1": "ok", "1.2": "timeout"}))
    assert told.answer[1] == "1.1 is the first fixed release; 1.2 is not decided."


def test_nothing_is_affected() -> None:
    """How many releases, and which."""
    told = view(history({"1.0": "ok", "1.1": "ok"}))
    assert " ".join(told.answer) == (
        "None of the 2 releases of transformers measured, 1.0 to 1.1, gets the LongRoPE crossing"
        " of Phi-3 wrong."
    )


def test_nothing_is_conclusive() -> None:
    """Unknown looks unknown."""
    told = view(history({"1.0": "timeout", "1.1": "no_device"}))
    assert told.headline == "Not decided yet"
    assert told.tone == "unknown"
    assert "No cell of 2 planned is conclusive" in told.measured


def test_no_records_at_all() -> None:
    """An empty ledger makes a report, and it claims nothing."""
    told = view([])
    assert told.headline == "Nothing measured yet"
    assert told.models == ()


def test_main_is_told_with_commit_and_day() -> None:
    """A moving ref is nothing without the commit that it stood for."""
    told = view([*history({"1.0": "prefix_lost"}), main_branch("ok")])
    assert told.answer[-1] == "main (3758eba84, 2026-11-29) is fixed."


def test_an_old_measurement_of_main_is_stale() -> None:
    """What main was a month ago is not what it is."""
    old = provenance(started_at="2026-10-01T00:00:00Z")
    told = view([*history({"1.0": "prefix_lost"}), main_branch("ok", provenance=old)])
    assert told.answer[-1] == "main (3758eba84, 2026-10-01, stale) is fixed."
    assert any("stale" in glance.label for glance in told.glances)


def test_the_backend_is_named_where_only_one_is_affected() -> None:
    """In which mode: eager, if sdpa was tried and is right."""
    records = [record(outcome="wrong_mask"), record(attention="sdpa")]
    assert "(decode-crossing on eager)" in view(records).answer[0]
    records = [record(outcome="wrong_mask"), record(outcome="no_backend", attention="sdpa")]
    assert "(decode-crossing)" in view(records).answer[0]


def test_the_summary_says_what_it_rests_on() -> None:
    """Runtime, backends, device, day, and how much of the plan is conclusive."""
    records = cases(history({"1.0": "ok", "1.1": "ok"}), attention=("eager", "sdpa"))
    told = view(records, planned=("1.0 3.11/2.13.0", "1.1 3.11/2.13.0", "1.2 3.11/2.13.0"))
    assert told.measured == (
        "Measured 2026-11-29 on Python 3.11 with torch 2.13.0 (eager on cpu and sdpa on cpu):"
        " 2 of 3 planned cells are conclusive."
    )
    assert told.summary.endswith(told.measured)


def test_a_cell_with_a_case_in_doubt_is_not_conclusive() -> None:
    """Half an answer is none."""
    told = view([record(), record(outcome="timeout", scenario="left-padded")])
    assert (told.coverage.planned, told.coverage.conclusive) == (1, 0)


def test_what_is_wrong_beyond_the_core_is_in_the_answer() -> None:
    """Fixed, but not in every way of use: in the headline, the sentences and the tone."""
    told = view(
        [*history({"1.0": "crash", "1.1": "ok"}), record("1.1", "crash", scenario="crop-back")]
    )
    assert told.headline == "Affected: 1.0; fixed in 1.1, but not in every way of use"
    assert told.answer[-1] == "Beyond the core ways of use, 1.1 still goes wrong in crop-back."
    assert told.tone == "partly"


def test_other_models_are_told_in_a_few_words() -> None:
    """The first model's sentence, and what holds for the others."""
    told = view([record(outcome="prefix_lost"), record(model="phimoe")])
    assert told.answer[-1] == "PhiMoE: not affected: 1.0.0."


@given(histories())
def test_no_span_contains_what_is_not_decided(records: list[Record]) -> None:
    """Spans and sightings consist of releases that decided, each in one span."""
    findings = conclude(records, RUN)
    told = spans(findings.statements, findings.releases)
    verdicts = {s.release: s for s in findings.statements}
    decided = [
        name
        for name in findings.releases
        if name in verdicts and verdicts[name].statement != "under_investigation"
    ]
    assert [name for span in told for name in span.releases] == decided
    for span in told:
        assert all(verdicts[n].statement.right is not span.affected for n in span.releases)


@given(histories())
def test_sightings_are_the_affected_records(records: list[Record]) -> None:
    """Every affected record is in exactly one sighting of its defect and scenario."""
    findings = conclude(records, RUN)
    seen = [
        (sighting.defect, way.split(" ")[0], release)
        for sighting in sightings(findings.records, findings.releases)
        for way in sighting.ways
        for release in sighting.releases
    ]
    expected = {
        (r.defect, r.scenario, r.transformers)
        for r in records
        if r.defect is not None and r.source is Source.INDEX
    }
    assert len(seen) == len(set(seen))
    assert set(seen) == expected


def test_right_in_the_core_alone_is_no_green_light() -> None:
    """The newest release's verdict says at a glance that other ways of use are wrong."""
    core = history({"1.0": "prefix_lost", "1.1": "ok"})
    beyond = history({"1.1": "stale_keys"}, scenario="crop-back")
    right, partly = view(core).glances[0], view([*core, *beyond]).glances[0]
    assert (right.value, right.look) == ("✓ fixed", "good")
    assert (partly.value, partly.look) == ("✓ fixed in the core, wrong in 1 other way", "")
