"""A workaround is called right only where the oracles say so on this very release."""

from __future__ import annotations

import pytest

from checks import adapt
from checks.bench import Bench
from checks.catalog import SCENARIOS, WORKAROUNDS, Case
from checks.measure import measure
from checks.models import SPECS, TINY
from checks.workarounds import BENCHES, NoCache, SecondCall
from tests.checks.planting import PLANTS

pytestmark = pytest.mark.filterwarnings("default")

CASE = Case("phi3", "decode-crossing", "eager")
BY_NAME = {plant.name: plant for plant in PLANTS}


def test_every_workaround_has_a_bench() -> None:
    """And scenarios ask for none that isn't there."""
    assert set(BENCHES) == set(WORKAROUNDS)
    asked = {name for scenario in SCENARIOS.values() for name in scenario.workarounds}
    assert asked == set(WORKAROUNDS)


def test_without_a_cache_every_forward_reads_the_whole_text() -> None:
    """That is what makes it slow, and right."""
    bench = NoCache.build(CASE, TINY)
    run = bench.generate(bench.prompt(4), 8)
    assert [call.fed for call in run.calls] == list(range(4, 12))
    assert not any(call.cached for call in run.calls)


@pytest.mark.parametrize("length", [4, 8])
def test_two_calls_make_the_same_steps_and_part_after_the_boundary(length: int) -> None:
    """The second call begins with O + 1 tokens and nothing cached."""
    bench = SecondCall.build(CASE, TINY)
    run = bench.generate(bench.prompt(length), 12 - length)
    assert [step.length for step in run.steps] == list(range(length, 12))
    begins = [index for index, call in enumerate(run.calls) if not call.cached]
    assert [run.calls[index].fed for index in begins] == [length, TINY.original + 1]
    assert len(run.chosen) == len(run.steps)


@pytest.mark.parametrize(("length", "new"), [(4, 5), (9, 3)])
def test_what_does_not_cross_stays_one_call(length: int, new: int) -> None:
    """Nothing to work around: the run is the plain one."""
    plain = Bench.build(CASE, TINY).generate(Bench.build(CASE, TINY).prompt(length), new)
    bench = SecondCall.build(CASE, TINY)
    assert len(bench.generate(bench.prompt(length), new).calls) == len(plain.calls)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("plant", "expected"),
    [
        ("keeps one token of the prefix", {"second-call": "ok", "no-cache": "ok"}),
        ("never clears", {"second-call": "ok", "no-cache": "ok"}),
        ("raises at the crossing", {"second-call": "ok", "no-cache": "ok"}),
        # Wrong at every step past O that a cache has part in, as in a release that loses the
        # prefix whatever it is given: no second call helps.
        ("lets a NaN through", {"second-call": "affected", "no-cache": "ok"}),
    ],
)
def test_workarounds_are_judged(
    plant: str, expected: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What helps against a planted defect is ok, and what doesn't is not."""
    if measure(CASE).status != "ok":
        pytest.skip(f"{CASE.id} is not right in this release to begin with")
    BY_NAME[plant].change(monkeypatch, adapt.load_classes(SPECS["phi3"]).model)
    result = measure(CASE)
    assert result.status == "affected"
    assert result.evidence["workarounds"] == expected


@pytest.mark.slow
def test_a_workaround_that_breaks_is_no_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """It costs nothing but itself: the record stays what it was."""
    if measure(CASE).status != "ok":
        pytest.skip(f"{CASE.id} is not right in this release to begin with")
    plant = BY_NAME["keeps one token of the prefix"]
    plant.change(monkeypatch, adapt.load_classes(SPECS["phi3"]).model)

    def breaks(*_: object, **__: object) -> None:
        raise RuntimeError("planted in the workaround")

    monkeypatch.setattr(SecondCall, "generate", breaks)
    result = measure(CASE)
    assert (result.status, result.defect) == ("affected", "prefix_lost")
    assert result.evidence["workarounds"] == {"second-call": "error", "no-cache": "ok"}


def test_a_model_that_is_wrong_itself_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where generation agrees with its own model, no other way of generating helps."""
    if measure(CASE).status != "ok":
        pytest.skip(f"{CASE.id} is not right in this release to begin with")
    plant = BY_NAME["never switches factors"]
    plant.change(monkeypatch, adapt.load_classes(SPECS["phi3"]).model)
    result = measure(CASE)
    assert result.status == "affected"
    assert "workarounds" not in result.evidence
