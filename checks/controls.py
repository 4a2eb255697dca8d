"""The controls: what must behave before a record may say ``ok`` or ``affected``.

*below*: the same scenario, on a model that differs only in an O too large to be crossed, agrees.
*power*: on this very prefix the two sets of factors, and the last token alone, are far apart, so
that a defect would show. *sabotage*: a generation whose prefix is dropped on purpose is flagged.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from itertools import takewhile
from typing import Any

import torch

from checks.bench import Bench
from checks.catalog import Case
from checks.compare import Agreement, Tolerance, compare, relative_error
from checks.errors import CheckError
from checks.longrope import is_long
from checks.models import Shape
from checks.observation import Run, Step
from checks.oracles import Answers, against_uncached
from checks.reference import Reference, Variant

_SABOTAGED = 9
"""Tokens of the prompt that is sabotaged; a dropped prefix shows at any length."""


@dataclass(frozen=True)
class Controls:
    """What the controls measured, as relative errors; None where one doesn't apply.

    Attributes:
        below: cached against uncached, where nothing crosses. Must agree.
        power: short against long factors. Must be large.
        last_token: the last token alone against the whole prefix. Must be large.
        sabotage: a generation with its prefix dropped against oracle U. Must differ.
    """

    below: float | None
    power: float | None
    last_token: float | None
    sabotage: float | None

    def complaint(self, tolerance: Tolerance) -> str | None:
        """What misbehaved, or None."""
        if self.below is not None and tolerance.verdict(self.below) is not Agreement.AGREE:
            return f"cached and uncached differ by {self.below:.2g} even where nothing crosses"
        for name, error in (
            ("both sets of factors", self.power),
            ("the last token", self.last_token),
        ):
            if error is not None and not error >= tolerance.power:
                return f"no power: {name} differ by only {error:.2g} on this prefix"
        if self.sabotage is not None and tolerance.verdict(self.sabotage) is not Agreement.DIFFER:
            return f"a prefix dropped on purpose shows as {self.sabotage:.2g} only"
        return None


def below(control: Bench, run: Run, tolerance: Tolerance) -> float | None:
    """The negative control's error; infinite where it shows a flaw beside its logits."""
    if not run.steps:
        return None
    if run.flaws:
        return float("inf")
    return against_uncached(control, run.steps, tolerance).worst


def below_in_itself(bench: Bench, run: Run, answers: Answers, tolerance: Tolerance) -> float:
    """The error of those steps of *run* that come before anything has crossed.

    Raises:
        CheckError: there are none.
    """
    before = list(takewhile(lambda step: not is_long(bench.shape, step.mask), run.steps))
    if not before:
        raise CheckError("the scenario has no step below O to be its own control")
    observed = [step.logits for step in before]
    return compare(observed, answers.expected[: len(before)], tolerance).worst


def power(reference: Reference, step: Step) -> tuple[float, float]:
    """How far apart both sets of factors, and the last token alone, are: the least of all rows."""
    long = is_long(reference.shape, step.mask)
    both = [Variant(long=long), Variant(long=not long)]
    right, other = reference.logits_of(step.tokens, step.mask, both)
    alone = Variant(long=long, positions=step.mask.sum(dim=1, keepdim=True) - 1)
    last = reference.logits(step.tokens[:, -1:], step.mask[:, -1:], alone)
    return float(relative_error(other, right).min()), float(relative_error(last, right).min())


def sabotage(bench: Bench, tolerance: Tolerance) -> float:
    """Error of a generation whose every forward gets only its last token.

    Nothing of the scenario is in it, so one does for all of them that use the same model.

    Raises:
        CheckError: the forward's arguments are not what the sabotage knows to cut.
    """
    return _sabotaged(replace(bench.case, scenario="decode-crossing"), bench.base, tolerance)


@cache
def _sabotaged(case: Case, base: Shape, tolerance: Tolerance) -> float:
    bench = Bench.build(case, base)
    width = 0

    def drop_prefix(_module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        nonlocal width
        ids = kwargs.get("input_ids", args[0] if args else None)
        if ids is None:
            raise CheckError(f"no input_ids among the arguments of forward: {sorted(kwargs)}")
        width = int(ids.shape[1])
        cut = {
            name: value[..., -1:]
            if isinstance(value, torch.Tensor) and value.shape[-1:] == (width,)
            else value
            for name, value in kwargs.items()
        }
        return (), {**cut, "input_ids": ids[:, -1:]}

    handle = bench.model.register_forward_pre_hook(drop_prefix, with_kwargs=True)
    try:
        run = bench.generate(bench.prompt(_SABOTAGED), 1, use_cache=False)
    finally:
        handle.remove()
    if width != _SABOTAGED:
        raise CheckError(f"the sabotage met a forward of {width} tokens")
    return against_uncached(bench, run.steps, tolerance).worst
