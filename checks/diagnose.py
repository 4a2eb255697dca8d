"""Naming a defect by its fingerprint: which mistake would have given these logits?

Each hypothesis is computed by the reference in float64, and a defect is named only where the
observed logits match one to within tolerance. What no hypothesis matches is ``unclassified``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import torch

from checks.compare import Tolerance, relative_error
from checks.longrope import attention_scaling, is_long
from checks.models import Shape
from checks.observation import Call, Step
from checks.reference import Reference, Variant

_LARGEST_SEARCHED = 64


@dataclass(frozen=True)
class Hypothesis:
    """One mistake, and what would be computed if it were made."""

    defect: str
    variant: Variant
    detail: str = ""


@dataclass(frozen=True)
class Diagnosis:
    """What the observed logits match.

    Attributes:
        defect: its name, ``unclassified`` where nothing matches.
        distance: relative error to the hypothesis that fits best.
        distances: the smallest for each defect.
        detail: what exactly matched, in words.
    """

    defect: str
    distance: float
    distances: dict[str, float]
    detail: str = ""


def diagnose(
    reference: Reference,
    step: Step,
    rows: tuple[int, ...],
    call: Call | None,
    tolerance: Tolerance,
) -> Diagnosis:
    """Name what went wrong in *rows* of *step*.

    The plain form of each defect is tried first; only where none matches are the families
    searched (which part of the prefix is lost, which keys are stale, what scaling was used).
    """
    if not bool(step.logits[list(rows)].isfinite().all()):
        return Diagnosis("non_finite", 0.0, {"non_finite": 0.0}, "logits that aren't finite")
    fits = _Fits(rows)
    # On a long prefix a hypothesis costs a second, and the families have hundreds.
    small = step.length <= _LARGEST_SEARCHED
    families = (_plain, _families, _chosen_apart) if small else (_plain,)
    for family in families:
        hypotheses = list(family(reference.shape, step, call))
        distances = _distances(reference, step, hypotheses).tolist()
        for hypothesis, of_rows in zip(hypotheses, distances):
            fits.add(hypothesis, of_rows)
        if fits.matched(tolerance):
            return fits.diagnosis(tolerance)
    if small:
        right = is_long(reference.shape, step.mask)
        for defect, long in (("wrong_scaling", right), ("wrong_factor", not right)):
            scaling, of_rows = _fit_scaling(reference, step, rows, long)
            words = f"{'long' if long else 'short'} factors, scaled by {scaling:.4f}"
            fits.add(Hypothesis(defect, Variant(), words), of_rows)
    return fits.diagnosis(tolerance)


class _Fits:
    """For each defect and row, the hypothesis that comes closest.

    One defect may show in several forms in one batch (a padded row whose mask went wrong attends
    differently from the row beside it), but it must explain every row that differs.
    """

    def __init__(self, rows: tuple[int, ...]) -> None:
        self._rows = rows
        self._best: dict[str, dict[int, tuple[float, str]]] = {}

    def add(self, hypothesis: Hypothesis, distances: Sequence[float]) -> None:
        """One more hypothesis and its distance in each row."""
        nothing = dict.fromkeys(self._rows, (math.inf, ""))
        best = self._best.setdefault(hypothesis.defect, nothing)
        for row in self._rows:
            distance = distances[row]
            if distance < best[row][0]:
                best[row] = (distance, hypothesis.detail)

    def _distances(self) -> dict[str, float]:
        return {
            defect: max(distance for distance, _ in best.values())
            for defect, best in self._best.items()
        }

    def matched(self, tolerance: Tolerance) -> bool:
        return min(self._distances().values()) <= tolerance.match

    def diagnosis(self, tolerance: Tolerance) -> Diagnosis:
        distances = self._distances()
        # Two mistakes may give the same logits (a token that sees itself alone has lost its
        # prefix, or is masked); then the plainer one, which was tried first, has the name.
        matching = [name for name, distance in distances.items() if distance <= tolerance.match]
        if not matching:
            return Diagnosis("unclassified", min(distances.values()), distances)
        defect = matching[0]
        details = dict.fromkeys(detail for _, detail in self._best[defect].values())
        return Diagnosis(defect, distances[defect], distances, "; ".join(details))


def _distances(reference: Reference, step: Step, hypotheses: Sequence[Hypothesis]) -> torch.Tensor:
    """Relative error of each row to what each hypothesis gives, (hypotheses, rows)."""
    variants = [hypothesis.variant for hypothesis in hypotheses]
    expected = reference.logits_of(step.tokens, step.mask, variants)
    if step.normalized:
        expected = expected.log_softmax(dim=-1)
    distances = relative_error(step.logits, expected)
    for index, variant in enumerate(variants):
        if variant.forget:
            # Where only padding is forgotten, nothing is lost, and something else must be wrong.
            lost = step.mask[:, : variant.forget].any(dim=1)
            distances[index].masked_fill_(~lost, math.inf)
    return distances


def _plain(shape: Shape, step: Step, call: Call | None) -> Iterator[Hypothesis]:
    """Each defect in its best known form."""
    length, long = step.length, is_long(shape, step.mask)
    fed = length if call is None or call.cached else min(max(call.fed, 1), length)
    for kept in dict.fromkeys((1, fed)):
        if kept < length:
            words = f"only the last {kept} of {length} tokens"
            yield Hypothesis("prefix_lost", Variant(forget=length - kept), words)
    # With its keys gone, a mask as wide as before may hide the one key that is left.
    blind = "prefix_lost" if fed < length else "wrong_mask"
    yield Hypothesis(blind, Variant(attention="nothing"), "nothing is seen")
    yield Hypothesis("wrong_mask", Variant(attention="everything alike"), "all is hidden alike")
    if shape.original < length:
        yield _stale(step, shape.original, long)
    yield Hypothesis("wrong_mask", Variant(causal=False), "later tokens are seen")
    yield Hypothesis("wrong_factor", Variant(long=not long), "the other set throughout")
    yield Hypothesis(
        "wrong_factor",
        Variant(long=not long, scaling=attention_scaling(shape, long)),
        "the other set throughout, with the right scaling",
    )
    yield Hypothesis(
        "wrong_factor",
        Variant(long=not long, scaling=1.0),
        "the other set throughout, without scaling",
    )
    yield Hypothesis("wrong_scaling", Variant(scaling=1.0), "no scaling")


def _stale(step: Step, count: int, long: bool) -> Hypothesis:
    """The first *count* columns have the other set: they were cached before it changed."""
    return Hypothesis(
        "stale_keys",
        Variant(long=_sets(step, count, long)),
        f"the first {count} tokens have {'short' if long else 'long'} factors",
    )


def _sets(step: Step, count: int, long: bool) -> torch.Tensor:
    """A set for each position: the other one than *long* in the first *count* columns."""
    columns = torch.arange(step.length).expand_as(step.tokens)
    return (columns < count) != long


def _families(shape: Shape, step: Step, call: Call | None) -> Iterator[Hypothesis]:
    """The less plain forms: parts of the prefix, padding that is seen, windows, scalings."""
    fed = None if call is None or call.cached else call.fed
    length, long = step.length, is_long(shape, step.mask)
    padded = not bool(step.mask.all())
    arange = torch.arange(length).expand_as(step.tokens)
    for other in (False, True):
        words = "later tokens are seen" + (", and the other set is used" if other else "")
        yield Hypothesis("wrong_mask", Variant(causal=False, long=long != other), words)
    for count in range(1, length):
        yield _stale(step, count, long)
        yield Hypothesis(
            "wrong_factor",
            Variant(long=_sets(step, count, not long)),
            f"{'short' if long else 'long'} factors after the first {count} tokens",
        )
    for kept in range(1, length):
        for other in (False, True):
            for positions in (None, (arange - (length - kept)).clamp_min(0)):
                lost = Variant(forget=length - kept, long=long != other, positions=positions)
                words = f"only the last {kept} of {length} tokens"
                yield Hypothesis("prefix_lost", lost, words)
                # The same logits come of a mask that shows every token these columns; that the
                # others were never fed is what makes it a loss.
                if kept == fed:
                    unmasked = replace(lost, causal=False)
                    yield Hypothesis("prefix_lost", unmasked, f"{words}, unmasked")
    if padded:
        for positions in (None, arange, _positions_with_ones(step)):
            for other in (False, True):
                yield Hypothesis(
                    "wrong_mask",
                    Variant(padding_hidden=False, positions=positions, long=long != other),
                    "padding is seen",
                )
        yield Hypothesis("wrong_mask", Variant(positions=arange), "padding counts as positions")
    for first in range(length):
        for end in range(first + 1, length + 1):
            words = f"every token sees columns {first} to {end - 1}"
            yield Hypothesis("wrong_mask", Variant(only=(first, end)), words)
    if shape.window is not None:
        yield Hypothesis("wrong_mask", Variant(window=None), "no window")
    for window in range(1, length):
        if window != shape.window:
            yield Hypothesis("wrong_mask", Variant(window=window), f"a window of {window}")
    if shape.window is not None:
        # Older releases count their windows otherwise, which a second defect must not hide.
        for window in range(1, length + 1 if shape.original < length else 1):
            stale = _stale(step, shape.original, long)
            variant = replace(stale.variant, window=window)
            yield Hypothesis("stale_keys", variant, f"{stale.detail}, in a window of {window}")


def _positions_with_ones(step: Step) -> torch.Tensor:
    """Positions as most releases fill them in, with 1 under padding."""
    return (step.mask.cumsum(dim=-1) - 1).masked_fill(step.mask == 0, 1)


def _chosen_apart(shape: Shape, step: Step, call: Call | None) -> Iterator[Hypothesis]:
    """Where each set has a scaling of its own, factors and scaling may have been chosen apart.

    Either may be right, the other one, or change at some column.
    """
    del call
    if shape.scalings is None:
        return
    long, columns = is_long(shape, step.mask), torch.arange(step.length).expand_as(step.tokens)
    patterns = {"right": torch.full_like(columns, long, dtype=torch.bool)}
    patterns["other"] = ~patterns["right"]
    for count in range(1, step.length):
        patterns[f"other in the first {count}"] = _sets(step, count, long)
        patterns[f"other after the first {count}"] = _sets(step, count, not long)
    values = torch.tensor(shape.scalings, dtype=torch.float64)
    for factors, sets in patterns.items():
        for scalings, scales in patterns.items():
            if factors == "other" or factors.startswith("other after"):
                defect = "wrong_factor"
            elif factors == "right" and scalings == "other":
                defect = "wrong_scaling"
            else:
                defect = "stale_keys"
            words = f"factors {factors}, scaling {scalings}"
            yield Hypothesis(defect, Variant(long=sets, scaling=values[scales.long()]), words)


def _fit_scaling(
    reference: Reference, step: Step, rows: tuple[int, ...], long: bool
) -> tuple[float, Sequence[float]]:
    """The scaling between 0.5 and 3 that fits best, and its distances: ever finer looks."""

    def distances(scalings: Sequence[float]) -> torch.Tensor:
        return _distances(
            reference,
            step,
            [Hypothesis("", Variant(long=long, scaling=scaling)) for scaling in scalings],
        )

    width, centre = 1.25, 1.75
    while width > 1e-8:
        scalings = [centre + width * (i - 25) / 25 for i in range(51)]
        worst = distances(scalings)[:, list(rows)].amax(dim=1)
        centre = scalings[int(worst.argmin())]
        width /= 20
    return centre, distances([centre])[0].tolist()
