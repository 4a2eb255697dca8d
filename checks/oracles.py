"""Asks both oracles about every step of a run.

*U, uncached*: the same release, the same model object, no cache, one forward over the whole
prefix. Does generation agree with the model? *R, reference*: an independent float64 forward. Is
the model itself right?
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from checks.bench import Bench
from checks.compare import Comparison, Tolerance, compare, margin
from checks.observation import Flaw, Run, Step
from checks.reference import Reference


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
        """The comparison that says most: U where it sees a difference, else R."""
        if self.uncached.first is None and self.reference is not None:
            return self.reference
        return self.uncached


def ask(bench: Bench, run: Run, reference: Reference | None, tolerance: Tolerance) -> Answers:
    """Compare every step of *run* with both oracles."""
    observed = [step.logits for step in run.steps]
    expected = [by_uncached(bench, step) for step in run.steps]
    right = None
    # In a lower precision every sum is rounded: there the float64 oracle would measure the
    # precision and not the release.
    if reference is not None and bench.case.dtype == "float32":
        right = compare(
            observed, [by_reference(reference, step) for step in run.steps], tolerance
        )
    return Answers(tuple(expected), compare(observed, expected, tolerance), right)


def by_uncached(bench: Bench, step: Step) -> torch.Tensor:
    """What oracle U says after the prefix of *step*, (rows, vocabulary) float32."""
    expected = step.expected
    if expected is None:
        expected = bench.uncached(step.tokens, step.mask)
    return expected.log_softmax(dim=-1) if step.normalized else expected


def by_reference(reference: Reference, step: Step) -> torch.Tensor:
    """What oracle R says after the prefix of *step*, (rows, vocabulary) float64."""
    expected = reference.logits(step.tokens, step.mask)
    return expected.log_softmax(dim=-1) if step.normalized else expected


def against_uncached(bench: Bench, steps: Sequence[Step], tolerance: Tolerance) -> Comparison:
    """*steps* against oracle U alone."""
    return compare(
        [step.logits for step in steps], [by_uncached(bench, step) for step in steps], tolerance
    )


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
