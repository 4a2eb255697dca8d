"""Asks both oracles about every step of a run.

*U, uncached*: the same release, the same model object, no cache, one forward over the whole
prefix. Does generation agree with the model? *R, reference*: an independent float64 forward. Is
the model itself right?
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

import torch

from checks.bench import Bench
from checks.compare import Comparison, Tolerance, compare, margin, relative_error
from checks.longrope import is_long
from checks.models import Shape
from checks.observation import Flaw, Run, Step
from checks.reference import Reference

_AskAt = Callable[[torch.Tensor, torch.Tensor, Sequence[int]], "list[torch.Tensor]"]
_LONG = 64
"""A longer prefix costs a second, and shares its forward whatever comes of it."""


@dataclass(frozen=True)
class Answers:
    """What the oracles say about a run.

    Attributes:
        expected: logits that oracle U gives after each step's prefix.
        uncached: observed against U.
        reference: observed against R, None where R doesn't apply.
    """

    expected: tuple[torch.Tensor, ...]
    uncached: Comparison
    reference: Comparison | None

    @property
    def telling(self) -> Comparison:
        """The comparison that sees a difference first; oracle U where both do."""
        by_u, by_r = self.uncached, self.reference
        if by_r is None or by_r.first is None:
            return by_u
        if by_u.first is None or by_r.first < by_u.first:
            return by_r
        return by_u


def reference_for(bench: Bench) -> Reference | None:
    """Oracle R for the model of *bench*, from its weights; None where it has no description.

    Whether a window of w tokens counts the token itself has differed, in the published code as
    between releases. What the model does on a text below O is taken for its window, so that a
    convention isn't called a defect of the crossing.
    """
    if bench.spec.architecture is None:
        return None
    weights = bench.model.state_dict()
    reference = Reference(bench.shape, weights, bench.spec.architecture)
    window = bench.shape.window
    if window is None:
        return reference
    tokens = bench.prompt(bench.boundary)
    mask = torch.ones_like(tokens)
    wider = Reference(replace(bench.shape, window=window + 1), weights, bench.spec.architecture)
    seen = bench.uncached(tokens, mask)
    error, other = (
        float(relative_error(seen, oracle.logits(tokens, mask)).max())
        for oracle in (reference, wider)
    )
    return wider if other < error else reference


def ask(bench: Bench, run: Run, reference: Reference | None, tolerance: Tolerance) -> Answers:
    """Compare every step of *run* with both oracles."""
    observed = [step.logits for step in run.steps]
    expected = by_uncached(bench, run.steps, tolerance)
    right = None
    # In a lower precision every sum is rounded: there the float64 oracle would measure the
    # precision and not the release.
    if reference is not None and bench.case.dtype == "float32":
        right = compare(observed, by_reference(reference, run.steps), tolerance)
    return Answers(tuple(expected), compare(observed, expected, tolerance), right)


def by_uncached(bench: Bench, steps: Sequence[Step], tolerance: Tolerance) -> list[torch.Tensor]:
    """What oracle U says after the prefix of each step, (rows, vocabulary) float32.

    A step that differs from a forward it shared is asked about again, in a forward of its own, so
    that a difference never rests on the model being causal.
    """
    own = [step.expected for step in steps]
    if all(expected is not None for expected in own):
        return _like(steps, own)
    expected = _like(steps, _after_each(bench.shape, steps, bench.uncached_at))
    for index, step in enumerate(steps):
        agrees = bool((relative_error(step.logits, expected[index]) <= tolerance.agree).all())
        if not agrees and step.length <= _LONG:
            alone = bench.uncached(step.tokens, step.mask)
            expected[index : index + 1] = _like([step], [alone])
    return expected


def by_reference(reference: Reference, steps: Sequence[Step]) -> list[torch.Tensor]:
    """What oracle R says after the prefix of each step, (rows, vocabulary) float64."""
    return _like(steps, _after_each(reference.shape, steps, reference.logits_at))


def against_uncached(bench: Bench, steps: Sequence[Step], tolerance: Tolerance) -> Comparison:
    """*steps* against oracle U alone."""
    expected = by_uncached(bench, steps, tolerance)
    return compare([step.logits for step in steps], expected, tolerance)


def _after_each(shape: Shape, steps: Sequence[Step], ask_at: _AskAt) -> list[torch.Tensor]:
    """An oracle's answer after each step's prefix.

    Neighbouring prefixes of one text that have the same set of factors share a forward, which is
    the same for a causal model.
    """
    answers: list[torch.Tensor] = []
    group: list[Step] = []
    for step, following in zip_longest(steps, steps[1:]):
        group.append(step)
        if following is None or not _shares(shape, step, following):
            answers += ask_at(step.tokens, step.mask, [member.length for member in group])
            group = []
    return answers


def _shares(shape: Shape, step: Step, following: Step) -> bool:
    """Whether *following* is about a continuation of the text of *step*, under the same set."""
    return (
        following.length >= step.length
        and torch.equal(step.tokens, following.tokens[:, : step.length])
        and torch.equal(step.mask, following.mask[:, : step.length])
        and is_long(shape, step.mask) == is_long(shape, following.mask)
    )


def _like(steps: Sequence[Step], logits: Sequence[torch.Tensor | None]) -> list[torch.Tensor]:
    """*logits* in the form in which the steps were seen."""
    return [
        expected.log_softmax(dim=-1) if step.normalized else expected
        for step, expected in zip(steps, logits)
        if expected is not None
    ]


def mischosen(run: Run, answers: Answers, tolerance: Tolerance) -> Flaw | None:
    """A token that greedy search should not have chosen, although its logits are right.

    Counted only where the margin between the two best exceeds ten times the tolerance.
    """
    for step, chosen, expected in zip(run.steps, run.chosen, answers.expected):
        clear = margin(expected) > 10 * tolerance.agree
        if bool((clear & (chosen != expected.argmax(dim=-1))).any()):
            return Flaw(
                "unclassified",
                f"after {step.length} tokens {chosen.tolist()} was chosen, "
                f"and {expected.argmax(dim=-1).tolist()} is best",
            )
    return None
