"""LongRoPE's rotary tables, in float64.

From Ding et al., 2024 (arXiv:2402.13753), as Phi-3's model card and code publish it: inverse
frequencies ``1 / (factor_i * theta ** (2i / d))``, and cos and sin scaled by
``sqrt(1 + ln(longest / O) / ln(O))`` where longest > O, else by 1.
"""

from __future__ import annotations

import math
from functools import cache

import torch

from checks.models import Shape


def inverse_frequencies(shape: Shape, long: bool) -> torch.Tensor:
    """LongRoPE's inverse frequencies of one set, (rotated / 2,) float64."""
    factors = torch.tensor(shape.long_factors if long else shape.short_factors, dtype=torch.float64)
    exponents = torch.arange(0, shape.rotated, 2, dtype=torch.float64) / shape.rotated
    return 1.0 / (factors * shape.theta**exponents)


def attention_scaling(shape: Shape, long: bool) -> float:
    """The factor on cos and sin."""
    if shape.scalings is not None:
        return shape.scalings[1] if long else shape.scalings[0]
    if shape.longest <= shape.original:
        return 1.0
    return math.sqrt(1 + math.log(shape.longest / shape.original) / math.log(shape.original))


@cache
def own_scalings(shape: Shape) -> torch.Tensor:
    """The scaling of either set, (2,) float64."""
    own = [attention_scaling(shape, long) for long in (False, True)]
    return torch.tensor(own, dtype=torch.float64)


@cache
def _both_sets(shape: Shape) -> torch.Tensor:
    """The inverse frequencies of either set, (2, rotated / 2) float64."""
    return torch.stack([inverse_frequencies(shape, long) for long in (False, True)])


def is_long(shape: Shape, mask: torch.Tensor) -> bool:
    """Which set is right for a batch: long iff the largest real position + 1 exceeds O.

    One set serves the whole batch, since the library computes the tables once for all rows.
    """
    return int(mask.sum(dim=1).max()) > shape.original


def rotary_tables(
    shape: Shape,
    positions: torch.Tensor,
    long: torch.Tensor,
    scaling: float | torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Cos and sin for each position under the set that it has.

    Args:
        positions: (rows, length) int64.
        long: (rows, length) bool, the set of each position.
        scaling: another factor on both than the set's own, for all positions or for each.

    Returns:
        Two tensors (rows, length, rotated) float64, the halves alike, as Phi-3 rotates them.
    """
    if scaling is None:
        scaling = own_scalings(shape)[long.long()]
    scale = torch.as_tensor(scaling, dtype=torch.float64).expand(long.shape)[..., None]
    angles = positions.double()[..., None] * _both_sets(shape)[long.long()]
    angles = torch.cat([angles, angles], dim=-1)
    return angles.cos() * scale, angles.sin() * scale
