"""When two sets of logits are the same, when they are not, and when nobody can tell.

Sound releases stay under 5e-6 in float32 and a lost prefix is above 0.4 (relative to the largest
logit), so 1e-4 leaves about 20x above the noise. What lies between the tolerance and ten times
the tolerance is neither: that is the grey zone.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import torch


class Agreement(enum.Enum):
    """How observed logits stand to an oracle."""

    AGREE = "agrees"
    GREY = "in the grey zone"
    DIFFER = "differs"


@dataclass(frozen=True)
class Tolerance:
    """Bounds on the relative error.

    Attributes:
        agree: at most this is agreement.
        differ: at least this is a difference.
        power: what a control must differ by, to show that a defect could be seen.
        match: at most this far from the float64 reference is a fingerprint recognised.
    """

    agree: float
    differ: float
    power: float
    match: float

    def verdict(self, error: float) -> Agreement:
        """What *error* means; a NaN is never agreement."""
        if error <= self.agree:
            return Agreement.AGREE
        if error < self.differ:
            return Agreement.GREY
        return Agreement.DIFFER


TOLERANCES: Mapping[str, Tolerance] = MappingProxyType(
    {
        "float32": Tolerance(agree=1e-4, differ=1e-3, power=1e-2, match=1e-4),
        # Rounding alone is up to 7e-2 from float64 in bfloat16 and 8e-3 in float16 on these models,
        # and less between two paths of a release. A hundred tolerances would be more than the
        # logits themselves, so power asks for less.
        "bfloat16": Tolerance(agree=6e-2, differ=1.2e-1, power=2e-1, match=1e-1),
        "float16": Tolerance(agree=1e-2, differ=3e-2, power=1e-1, match=2e-2),
    }
)


def relative_error(observed: torch.Tensor, expected: torch.Tensor) -> torch.Tensor:
    """Max |observed - expected| / max |expected|, over the last dimension.

    Args:
        observed, expected: (..., vocabulary), of shapes that broadcast, as (rows, vocabulary).

    Returns:
        (...,) float64, as (rows,); infinite where either holds a number that isn't finite.
    """
    observed, expected = observed.double(), expected.double()
    scale = expected.abs().amax(dim=-1).clamp_min(torch.finfo(torch.float64).tiny)
    error = (observed - expected).abs().amax(dim=-1) / scale
    sound = observed.isfinite().all(dim=-1) & expected.isfinite().all(dim=-1)
    return torch.where(sound, error, torch.full_like(error, math.inf))


def margin(logits: torch.Tensor) -> torch.Tensor:
    """Distance of the two best of each row, relative to its largest |logit|: (rows,) float64."""
    best = logits.double().topk(2, dim=-1).values
    scale = logits.double().abs().amax(dim=-1).clamp_min(torch.finfo(torch.float64).tiny)
    return (best[:, 0] - best[:, 1]) / scale


@dataclass(frozen=True)
class Comparison:
    """Observed steps against one oracle.

    Attributes:
        worst: the largest relative error of all steps and rows.
        agreement: what it means.
        differing: the steps that don't agree and the rows in which they don't, in order.
    """

    worst: float
    agreement: Agreement
    differing: tuple[tuple[int, tuple[int, ...]], ...]

    @property
    def first(self) -> int | None:
        """Index of the first step that doesn't agree, or None."""
        return self.differing[0][0] if self.differing else None


def compare(
    observed: Sequence[torch.Tensor], expected: Sequence[torch.Tensor], tolerance: Tolerance
) -> Comparison:
    """Compare the logits of every step and every row.

    Raises:
        ValueError: there is nothing to compare, or not as much on both sides.
    """
    if not observed or len(observed) != len(expected):
        raise ValueError(f"{len(observed)} observed steps, {len(expected)} expected")
    worst, differing = 0.0, []
    for index, (seen, right) in enumerate(zip(observed, expected)):
        if seen.shape != right.shape:
            raise ValueError(f"step {index}: {tuple(seen.shape)} against {tuple(right.shape)}")
        errors = relative_error(seen, right)
        worst = max(worst, float(errors.max()))
        wrong = ~(errors <= tolerance.agree)
        if bool(wrong.any()):
            differing.append((index, tuple(torch.nonzero(wrong).flatten().tolist())))
    return Comparison(worst, tolerance.verdict(worst), tuple(differing))
