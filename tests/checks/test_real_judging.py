"""Comparing, judging and telling: the pure parts of the instrument that need torch."""

from __future__ import annotations

import json
import math

import pytest
import torch

from checks import environment
from checks.catalog import Case, select_cases
from checks.compare import TOLERANCES, Agreement, compare, margin, relative_error
from checks.controls import Controls
from checks.judge import judge
from checks.measure import measure
from checks.models import SPECS, TINY
from checks.observation import Call, short_trace
from checks.scenarios import registry

pytestmark = pytest.mark.filterwarnings("default")
AGREE, GREY, DIFFER = Agreement.AGREE, Agreement.GREY, Agreement.DIFFER


@pytest.mark.parametrize(
    ("uncached", "reference", "status"),
    [
        (AGREE, AGREE, "ok"),
        (DIFFER, DIFFER, "affected"),
        (AGREE, DIFFER, "affected"),
        (DIFFER, AGREE, "inconclusive"),
        (GREY, AGREE, "inconclusive"),
        (AGREE, GREY, "inconclusive"),
        (DIFFER, GREY, "inconclusive"),
        (AGREE, None, "ok"),
        (DIFFER, None, "affected"),
        (None, DIFFER, "affected"),
    ],
)
def test_both_oracles_are_read_together(
    uncached: Agreement | None, reference: Agreement | None, status: str
) -> None:
    """The table of the specification, and the grey zone."""
    assert judge(uncached, reference).status == status


def test_nothing_asked_is_nothing_said() -> None:
    """Without an oracle there is no verdict."""
    with pytest.raises(ValueError, match="neither"):
        judge(None, None)


@pytest.mark.parametrize("poison", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_never_agrees(poison: float) -> None:
    """Not even with itself, in either place."""
    sound, sick = torch.tensor([[1.0, 2.0]]), torch.tensor([[1.0, poison]])
    for one, two in ((sick, sound), (sound, sick), (sick, sick)):
        error = float(relative_error(one, two))
        assert TOLERANCES["float32"].verdict(error) is DIFFER
    assert TOLERANCES["float32"].verdict(math.nan) is DIFFER


def test_errors_are_relative_to_the_largest_logit_of_the_row() -> None:
    """And every row is judged by itself."""
    right = torch.tensor([[10.0, 0.0], [1.0, 0.0]])
    seen = right + torch.tensor([[0.0, 0.01], [0.0, 0.01]])
    assert relative_error(seen, right).tolist() == pytest.approx([0.001, 0.01], rel=1e-5)


def test_the_first_difference_is_told_with_its_rows() -> None:
    """Steps before it agree, and so may other rows."""
    right = [torch.eye(2), torch.eye(2), torch.eye(2)]
    seen = [torch.eye(2), torch.tensor([[1.0, 0.0], [0.5, 1.0]]), torch.zeros(2, 2)]
    comparison = compare(seen, right, TOLERANCES["float32"])
    assert comparison.agreement is DIFFER
    assert comparison.differing == ((1, (1,)), (2, (0, 1)))


def test_margin_is_the_distance_of_the_two_best() -> None:
    """Relative to the largest logit."""
    assert margin(torch.tensor([[4.0, 3.0, -8.0]])).tolist() == pytest.approx([1 / 8])


@pytest.mark.parametrize(
    ("controls", "complaint"),
    [
        (Controls(1e-6, 0.9, 0.9, 0.9), None),
        (Controls(1e-3, 0.9, 0.9, 0.9), "even where nothing crosses"),
        (Controls(math.inf, 0.9, 0.9, 0.9), "even where nothing crosses"),
        (Controls(1e-6, 1e-3, 0.9, 0.9), "no power: both sets"),
        (Controls(1e-6, 0.9, math.nan, 0.9), "no power: the last token"),
        (Controls(1e-6, 0.9, 0.9, 1e-5), "dropped on purpose"),
        (Controls(None, None, None, None), None),
    ],
)
def test_a_control_that_misbehaves_is_told(controls: Controls, complaint: str | None) -> None:
    """Each control by itself keeps a record from deciding anything."""
    said = controls.complaint(TOLERANCES["float32"])
    assert said is None if complaint is None else complaint in (said or "")


def test_the_trace_keeps_what_matters() -> None:
    """Plain steps in the middle fall away, a crossing stays."""
    calls = [Call(20, None), *(Call(1, 20 + i) for i in range(20)), Call(41, None), Call(1, 41)]
    assert short_trace(calls) == "20+0 1+20 ... 41+0 1+41"
    assert short_trace(calls[:4]) == "20+0 1+20 1+21 1+22"


def test_every_scenario_has_a_function() -> None:
    """And every function a scenario."""
    assert registry.registered() == {case.scenario for case in select_cases(["all"], ["all"])}


def test_a_device_that_is_not_there_is_not_run() -> None:
    """Nothing is guessed about it."""
    result = measure(Case("phi3", "decode-crossing", "eager", "musa"))
    assert (result.status, result.reason) == ("not_run", "no_device")


def test_a_scenario_that_breaks_the_check_is_an_error_and_never_ok(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What the check doesn't understand must not look like a sound release."""

    def raises(*_: object) -> None:
        raise RuntimeError("planted in the check")

    monkeypatch.setattr("checks.oracles.ask", raises)
    result = measure(Case("phi3", "below-boundary", "eager"))
    assert (result.status, result.reason) == ("error", "check_error")


def test_a_silent_release_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """A generate that doesn't show its logits gives no verdict."""
    monkeypatch.setattr("checks.observation.Recorder.observe", lambda *_: None)
    result = measure(Case("phi3", "decode-crossing", "eager"))
    assert (result.status, result.reason) == ("error", "check_error")


@pytest.mark.parametrize("scenario", ["below-boundary", "left-padded"])
def test_a_dead_control_makes_it_inconclusive(
    scenario: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sabotage that nobody notices means that nothing would have been noticed."""
    monkeypatch.setattr("checks.controls.sabotage", lambda *_: 0.0)
    result = measure(Case("phi3", scenario, "eager"))
    assert (result.status, result.reason) == ("inconclusive", "control_failed")


def test_evidence_is_small_plain_json() -> None:
    """A few hundred bytes, so that it can be committed."""
    result = measure(Case("phi3", "decode-crossing", "eager"))
    text = json.dumps(dict(result.evidence), allow_nan=False)
    assert len(text) < 1600
    assert {"error", "error_reference", "trace", "last_call", "controls"} <= set(result.evidence)


def test_weights_are_the_same_for_the_same_name() -> None:
    """Two models of one shape agree to the bit."""
    from checks.bench import Bench

    one, two = (Bench.build(Case("phi3", "below-boundary"), TINY) for _ in range(2))
    for (name, left), (_, right) in zip(
        one.model.named_parameters(), two.model.named_parameters(), strict=True
    ):
        assert torch.equal(left, right), name
    assert SPECS["phi3"].shape(TINY) == one.shape


@pytest.mark.parametrize(
    ("said", "floor"),
    [
        ("Disabling PyTorch because PyTorch >= 2.4 is required but found 2.1.0", "2.4"),
        ("PyTorch version 1.11 or newer is required", "1.11"),
        ("torch>=2.6.1 is needed", "2.6.1"),
        ("no such thing", None),
    ],
)
def test_the_floor_is_read_from_what_a_release_says(said: str, floor: str | None) -> None:
    """In whatever words it says so."""
    assert environment.torch_floor([said]) == floor


def test_a_difference_never_rests_on_a_forward_that_was_shared(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where a model isn't causal, its answer after a prefix is that of the prefix alone."""
    from checks.bench import Bench
    from checks.oracles import by_uncached

    bench = Bench.build(Case("phi3", "decode-crossing", "eager"), TINY)
    steps = bench.generate(bench.prompt(4), 4).steps
    right = [bench.uncached(step.tokens, step.mask) for step in steps]
    asked: list[list[int]] = []
    original = Bench.uncached_at

    def spoilt(
        self: Bench, tokens: torch.Tensor, mask: torch.Tensor, lengths: list[int]
    ) -> list[torch.Tensor]:
        asked.append(list(lengths))
        answers = original(self, tokens, mask, lengths)
        return answers if len(lengths) == 1 else [answer + 1 for answer in answers]

    monkeypatch.setattr(Bench, "uncached_at", spoilt)
    answers = by_uncached(bench, steps, TOLERANCES["float32"])
    assert asked == [[4, 5, 6, 7], [4], [5], [6], [7]]
    assert all(torch.equal(seen, alone) for seen, alone in zip(answers, right, strict=True))


@pytest.mark.parametrize("crossing", [True, False])
def test_what_torch_cannot_compile_says_nothing_about_a_release(
    crossing: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether it shows at the crossing only, or in the control as well."""
    from checks import adapt
    from tests.checks.planting import original_of

    class InductorError(RuntimeError):
        """As torch's compiler raises it."""

    InductorError.__module__ = "torch._inductor.exc"
    owner = adapt.load_classes(SPECS["phi3"]).model
    generate = owner.generate

    def breaks(self: object, *args: object, **kwargs: object) -> object:
        if crossing and original_of(self) != TINY.original:
            return generate(self, *args, **kwargs)
        raise RuntimeError("a release may wrap it") from InductorError("planted")

    monkeypatch.setattr(owner, "generate", breaks)
    result = measure(Case("phi3", "decode-crossing", "sdpa"))
    assert (result.status, result.reason) == ("unsupported", "no_backend")
    assert "torch cannot compile sdpa here" in result.evidence["message"]
