"""What helps without another release is told where it was seen, and nowhere else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from matrix.records import Evidence, Status
from reports.advice import advise
from reports.build_models import advice_view
from reports.evidence import release_view
from reports.statements import statements
from reports.ways_out import WayOut, helping, ways_out
from tests.reports.factory import RUN, main_branch, record

if TYPE_CHECKING:
    from matrix.records import Record

SECOND, NONE = "second-call", "no-cache"


def tried(transformers: str, outcome: str = "prefix_lost", **rest: Any) -> Record:
    """An affected record and what workarounds did; ``second_call="ok"``."""
    names = {"second_call": SECOND, "no_cache": NONE}
    found = {names[key]: Status(rest.pop(key)) for key in list(names) if key in rest}
    evidence = Evidence(workarounds=found or None)
    return record(transformers, outcome, evidence=evidence, **rest)


def test_runs_name_where_it_helps_and_where_not() -> None:
    """A run reaches over nothing else: neither a right release nor one that differs."""
    records = [
        tried("1.0", second_call="ok"),
        tried("1.1", second_call="ok"),
        record("1.2"),
        tried("1.3", second_call="ok"),
        tried("1.4", second_call="affected"),
        tried("1.5", second_call="ok"),
    ]
    [way] = ways_out(records, [r.transformers for r in records])
    assert way == WayOut(
        workaround=SECOND,
        scenarios=("decode-crossing",),
        right=(("1.0", "1.1"), ("1.3",), ("1.5",)),
        wrong=(("1.4",),),
    )


def test_one_case_that_stays_wrong_is_enough() -> None:
    """On another backend, say; an error is no way out either."""
    records = [
        tried("1.0", second_call="ok", no_cache="ok"),
        tried("1.0", attention="sdpa", second_call="affected", no_cache="error"),
    ]
    assert [(w.workaround, w.right, w.wrong) for w in ways_out(records, ["1.0"])] == [
        (SECOND, (), (("1.0",),)),
        (NONE, (), (("1.0",),)),
    ]


def test_what_gave_no_answer_is_told_neither_way() -> None:
    """Unknown is not right, and not wrong."""
    assert ways_out([tried("1.0", second_call="unsupported")], ["1.0"]) == ()
    assert ways_out([tried("1.0", second_call="inconclusive")], ["1.0"]) == ()
    assert ways_out([record("1.0"), tried("1.1")], ["1.0", "1.1"]) == ()


def test_moving_refs_are_left_out() -> None:
    """Nobody can look up tomorrow what main was today."""
    one = main_branch("prefix_lost", evidence=Evidence(workarounds={SECOND: Status.OK}))
    assert ways_out([one], []) == ()


def test_ways_of_use_that_do_the_same_are_told_together() -> None:
    """In the order of the catalog."""
    records = [
        tried("1.0", scenario=name, second_call="ok") for name in ("left-padded", "decode-crossing")
    ]
    [way] = ways_out(records, ["1.0"])
    assert way.scenarios == ("decode-crossing", "left-padded")


def test_it_is_put_in_words() -> None:
    """One row for each way of use, under what to do."""
    records = [
        tried("1.0", second_call="ok", no_cache="ok"),
        tried("1.1", second_call="affected", no_cache="ok"),
    ]
    releases = ["1.0", "1.1"]
    advice = advise("phi3", statements(records), releases)
    second, none = advice_view(advice, ways_out(records, releases)).ways_out
    assert "call generate again" in second.what
    assert [(h.ways, h.right, h.wrong) for h in second.help] == [("decode-crossing", "1.0", "1.1")]
    assert [(h.ways, h.right, h.wrong) for h in none.help] == [
        ("decode-crossing", "1.0 to 1.1", "none")
    ]


def test_a_release_s_page_tells_its_own() -> None:
    """Beside the other numbers of the case."""
    view = release_view("1.0", [tried("1.0", second_call="ok", no_cache="affected")], [], RUN)
    facts = dict(view.scenarios[0].cases[0].facts)
    assert "call generate again" in facts["Workarounds tried"]
    assert "✓ ok" in facts["Workarounds tried"]
    assert "✕ affected" in facts["Workarounds tried"]


def test_what_helps_a_release_helps_in_every_case_of_it() -> None:
    """Neither one that stays wrong nor one where it was not tried may be passed over."""
    records = [
        tried("1.0", second_call="ok", no_cache="ok"),
        tried("1.0", attention="sdpa", second_call="affected", no_cache="ok"),
        tried("1.1", second_call="ok", no_cache="ok"),
        tried("1.1", scenario="prompt-past-boundary", no_cache="ok"),
        tried("1.2", second_call="affected"),
        tried("1.3"),
        record("1.4"),
    ]
    assert helping(records) == {"1.0": (NONE,), "1.1": (NONE,), "1.2": ()}
