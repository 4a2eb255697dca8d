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
from checks.models import Shape
from checks.observation import Call, Step
from checks.reference import Reference, Variant, attention_scaling, is_long

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
        for hypothesis, distances in zip(hypotheses, _distances(reference, step, hypotheses)):
            fits.add(hypothesis, distances)
        if fits.matched(tolerance):
            return fits.diagnosis(tolerance)
    if small:
        right = is_long(reference.shape, step.mask)
        for defect, long in (("wrong_scaling", right), ("wrong_factor", not right)):
            scaling, distances = _fit_scaling(reference, step, rows, long)
            words = f"{'long' if long else 'short'} factors, scaled by {scaling:.4f}"
            fits.add(Hypothesis(defect, Variant(), words), distances)
    return fits.diagnosis(tolerance)


class _Fits:
    """For each defect and row, the hypothesis that comes closest.

    One defect may show in several forms in one batch (a padded row whose mask went wrong attends
    differently from the row beside it), but it must explain every row that differs.
    """

    def __init__(self, rows: tuple[int, ...]) -> None:
        self._rows = rows
        self._best: dict[str, dict[int, tuple[float, str]]] = {}

    def add(self, hypothesis: Hypothesis, distances: torch.Tensor) -> None:
        """One more hypothesis and its distance in each row, (rows,)."""
        nothing = dict.fromkeys(self._rows, (math.inf, ""))
        best = self._best.setdefault(hypothesis.defect, nothing)
        for row in self._rows:
            distance = float(distances[row])
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


def _distances(
    reference: Reference, step: Step, hypotheses: Sequence[Hypothesis]
) -> list[torch.Tensor]:
    """Relative error of each row to what each hypothesis gives, (rows,) each.

    Hypotheses that differ only in what every position has for itself share a forward.
    """
    groups: dict[Variant, list[int]] = {}
    for index, hypothesis in enumerate(hypotheses):
        common = replace(hypothesis.variant, long=None, scaling=None, positions=None)
        groups.setdefault(common, []).append(index)
    distances: dict[int, torch.Tensor] = {}
    for common, members in groups.items():
        variants = [hypotheses[index].variant for index in members]
        for index, logits in zip(members, _together(reference, step, common, variants)):
            distances[index] = _distance(step, logits, common)
    return [distances[index] for index in range(len(hypotheses))]


def _together(
    reference: Reference, step: Step, common: Variant, variants: Sequence[Variant]
) -> list[torch.Tensor]:
    """The logits of variants that are *common* but for sets, scalings and positions."""
    filled = [_filled(reference.shape, step, variant) for variant in variants]
    long, scaling, positions = (torch.cat(parts) for parts in zip(*filled))
    count = len(variants)
    logits = reference.logits(
        step.tokens.repeat(count, 1),
        step.mask.repeat(count, 1),
        replace(common, long=long, scaling=scaling, positions=positions),
    )
    return list(logits.chunk(count))


def _filled(
    shape: Shape, step: Step, variant: Variant
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Set, scaling and position of every token, (rows, length) each."""
    long, scaling, positions = variant.long, variant.scaling, variant.positions
    if not isinstance(long, torch.Tensor):
        long = is_long(shape, step.mask) if long is None else long
        long = torch.full_like(step.tokens, long, dtype=torch.bool)
    if scaling is None:
        own = torch.tensor([attention_scaling(shape, which) for which in (False, True)])
        scaling = own.double()[long.long()]
    if positions is None:
        positions = (step.mask.cumsum(dim=-1) - 1).clamp_min(0)
    return long, torch.as_tensor(scaling, dtype=torch.float64).expand(long.shape), positions


def _distance(step: Step, expected: torch.Tensor, variant: Variant) -> torch.Tensor:
    if step.normalized:
        expected = expected.log_softmax(dim=-1)
    distances = relative_error(step.logits, expected)
    if variant.forget:
        # Where only padding is forgotten, nothing is lost, and something else must be wrong.
        lost = step.mask[:, : variant.forget].any(dim=1)
        distances = torch.where(lost, distances, torch.full_like(distances, math.inf))
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
) -> tuple[float, torch.Tensor]:
    """The scaling between 0.5 and 3 that fits best, and its distances: ever finer looks."""

    def distances(scalings: Sequence[float]) -> list[torch.Tensor]:
        return _distances(
            reference,
            step,
            [Hypothesis("", Variant(long=long, scaling=scaling)) for scaling in scalings],
        )

    def best(scalings: Sequence[float]) -> float:
        worst = [float(row[list(rows)].max()) for row in distances(scalings)]
        return scalings[worst.index(min(worst))]

    width, centre = 1.25, 1.75
    while width > 1e-8:
        centre = best([centre + width * (i - 25) / 25 for i in range(51)])
        width /= 20
    return centre, distances([centre])[0]
