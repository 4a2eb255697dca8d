"""Oracle R: the model itself, computed independently in float64.

Written from the published descriptions, and from nothing in transformers: Phi-3's decoder
(pre-norm, grouped-query attention, gated SiLU), and LongRoPE (Ding et al., 2024,
arXiv:2402.13753) as Phi-3's model card and code publish it: inverse frequencies
``1 / (factor_i * theta ** (2i / d))``, and cos and sin scaled by
``sqrt(1 + ln(longest / O) / ln(O))`` where longest > O, else by 1.

The set of factors is an argument here, chosen by the caller for each position. That makes the
same code the oracle and the source of every hypothesis about what went wrong: a token that was
computed under one set and kept in a cache simply has that set.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch

from checks.errors import CheckError
from checks.models import Shape

_CHUNK = 512
"""Queries attended at a time, so that a long prefix doesn't need length x length numbers."""


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
    sets = torch.stack([inverse_frequencies(shape, False), inverse_frequencies(shape, True)])
    if scaling is None:
        own = [attention_scaling(shape, which) for which in (False, True)]
        scaling = torch.tensor(own, dtype=torch.float64)[long.long()]
    scale = torch.as_tensor(scaling, dtype=torch.float64).expand(long.shape)[..., None]
    angles = positions.double()[..., None] * sets[long.long()]
    angles = torch.cat([angles, angles], dim=-1)
    return angles.cos() * scale, angles.sin() * scale


@dataclass(frozen=True)
class Variant:
    """What to compute otherwise than right, to see what a defect would give.

    Attributes:
        long: the set, for all positions or for each, (rows, length) bool; None chooses rightly.
        scaling: another factor on cos and sin, for all positions or for each, (rows, length).
        causal: whether later tokens are hidden.
        padding_hidden: whether padding is.
        positions: other positions than those of the mask, (rows, length).
        only: first and last column + 1 that every token sees, and no others, as where a mask for
            one query is stretched over all.
        window: sliding window in tokens; -1 for the shape's own.
        forget: columns at the start that no later token attends to.
        attention: what becomes of attention where a mask hides every key: ``nothing`` gives
            zeros (as torch's fused kernels do), ``everything alike`` the mean over all columns
            (as a large negative number added to every score does). None attends.
    """

    long: bool | torch.Tensor | None = None
    scaling: float | torch.Tensor | None = None
    causal: bool = True
    only: tuple[int, int] | None = None
    padding_hidden: bool = True
    positions: torch.Tensor | None = None
    window: int | None = -1
    forget: int = 0
    attention: str | None = None


RIGHT = Variant()


class Reference:
    """The decoder in float64, on a copy of a model's weights."""

    def __init__(
        self, shape: Shape, weights: Mapping[str, torch.Tensor], architecture: str
    ) -> None:
        """Take a copy of the weights.

        Args:
            weights: the model's state, by name.
            architecture: ``dense`` (Phi-3, Llama) or ``experts`` (PhiMoE, every expert weighing 1).

        Raises:
            CheckError: a weight is missing, or isn't of the size that *shape* says.
        """
        self.shape = shape
        self._layer_norms = architecture == "experts"
        self._weights = {
            name.split("model.", 1)[-1]: tensor.detach().to(device="cpu", dtype=torch.float64)
            for name, tensor in weights.items()
            if "embed_tokens_extend" not in name
        }
        if self._get("embed_tokens.weight").shape != (shape.vocabulary, shape.hidden):
            raise CheckError("the weights aren't those of this shape")

    def _get(self, name: str) -> torch.Tensor:
        try:
            return self._weights[name]
        except KeyError:
            raise CheckError(f"the reference finds no weight {name}") from None

    def _linear(self, name: str, values: torch.Tensor) -> torch.Tensor:
        bias = self._weights.get(f"{name}.bias")
        return torch.nn.functional.linear(values, self._get(f"{name}.weight"), bias)

    def _norm(self, name: str, values: torch.Tensor) -> torch.Tensor:
        weight, epsilon = self._get(f"{name}.weight"), self.shape.norm_epsilon
        if self._layer_norms:
            bias = self._weights.get(f"{name}.bias")
            return torch.nn.functional.layer_norm(values, weight.shape, weight, bias, epsilon)
        square = values.pow(2).mean(dim=-1, keepdim=True)
        return values * torch.rsqrt(square + epsilon) * weight

    def _project(self, prefix: str, values: torch.Tensor) -> tuple[torch.Tensor, ...]:
        shape = self.shape
        widths = [shape.heads * shape.head_size] + 2 * [shape.key_heads * shape.head_size]
        if f"{prefix}.qkv_proj.weight" in self._weights:
            parts = self._linear(f"{prefix}.qkv_proj", values).split(widths, dim=-1)
        else:
            parts = tuple(self._linear(f"{prefix}.{name}_proj", values) for name in "qkv")
        return tuple(part.unflatten(-1, (-1, shape.head_size)).transpose(1, 2) for part in parts)

    def _feed_forward(self, prefix: str, values: torch.Tensor) -> torch.Tensor:
        silu, names = torch.nn.functional.silu, self._weights
        if f"{prefix}.mlp.gate_up_proj.weight" in names:
            gate, up = self._linear(f"{prefix}.mlp.gate_up_proj", values).chunk(2, dim=-1)
            return self._linear(f"{prefix}.mlp.down_proj", silu(gate) * up)
        if f"{prefix}.mlp.experts.gate_up_proj" in names:  # experts stacked in one weight
            result = torch.zeros_like(values)
            stacked = zip(
                names[f"{prefix}.mlp.experts.gate_up_proj"],
                names[f"{prefix}.mlp.experts.down_proj"],
            )
            for gate_up, down in stacked:
                gate, up = (values @ gate_up.T).chunk(2, dim=-1)
                result = result + (silu(gate) * up) @ down.T
            return result
        for block in ("block_sparse_moe", "mlp"):
            if f"{prefix}.{block}.experts.0.w1.weight" in names:  # a module for each expert
                result, index = torch.zeros_like(values), 0
                while f"{prefix}.{block}.experts.{index}.w1.weight" in names:
                    expert = f"{prefix}.{block}.experts.{index}"
                    gate, up = (
                        self._linear(f"{expert}.w1", values),
                        self._linear(f"{expert}.w3", values),
                    )
                    result = result + self._linear(f"{expert}.w2", silu(gate) * up)
                    index += 1
                return result
        gate = self._linear(f"{prefix}.mlp.gate_proj", values)
        return self._linear(
            f"{prefix}.mlp.down_proj", silu(gate) * self._linear(f"{prefix}.mlp.up_proj", values)
        )

    def logits(
        self, tokens: torch.Tensor, mask: torch.Tensor, variant: Variant = RIGHT
    ) -> torch.Tensor:
        """Logits at the last position.

        Args:
            tokens: (rows, length) int64, padded on the left.
            mask: 1 at real tokens, (rows, length).
            variant: what to compute otherwise than right.

        Returns:
            (rows, vocabulary) float64.
        """
        return self.logits_at(tokens, mask, [tokens.shape[1]], variant)[0]

    def logits_at(
        self,
        tokens: torch.Tensor,
        mask: torch.Tensor,
        lengths: Sequence[int],
        variant: Variant = RIGHT,
    ) -> list[torch.Tensor]:
        """Logits after several prefixes of one text that have the same set of factors.

        Returns:
            For each of *lengths*, (rows, vocabulary) float64.
        """
        shape, length, first = self.shape, tokens.shape[1], min(lengths) - 1
        positions = variant.positions
        if positions is None:
            positions = (mask.long().cumsum(dim=-1) - 1).clamp_min(0)
        long = is_long(shape, mask) if variant.long is None else variant.long
        if not isinstance(long, torch.Tensor):
            long = torch.full_like(tokens, long, dtype=torch.bool)
        cos, sin = rotary_tables(shape, positions, long, variant.scaling)
        hidden = self._get("embed_tokens.weight")[tokens]
        for layer in range(shape.layers):
            prefix = f"layers.{layer}"
            normed = self._norm(f"{prefix}.input_layernorm", hidden)
            query, key, value = self._project(f"{prefix}.self_attn", normed)
            query, key = _rotate(query, cos, sin), _rotate(key, cos, sin)
            groups = shape.heads // shape.key_heads
            key, value = key.repeat_interleave(groups, 1), value.repeat_interleave(groups, 1)
            # Of the last layer, only the asked columns are needed.
            start = first if layer == shape.layers - 1 else 0
            mixed = torch.cat(
                [
                    self._attend(query[:, :, at : at + _CHUNK], key, value, mask, at, variant)
                    for at in range(start, length, _CHUNK)
                ],
                dim=1,
            )
            hidden = hidden[:, start:] + self._linear(f"{prefix}.self_attn.o_proj", mixed)
            normed = self._norm(f"{prefix}.post_attention_layernorm", hidden)
            hidden = hidden + self._feed_forward(prefix, normed)
        logits = self._linear("lm_head", self._norm("norm", hidden))
        return [logits[:, wanted - 1 - first] for wanted in lengths]

    def _attend(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        mask: torch.Tensor,
        start: int,
        variant: Variant,
    ) -> torch.Tensor:
        """Attention of the queries from column *start* on: (rows, queries, heads * head_size)."""
        if variant.attention == "nothing":
            return torch.zeros_like(query).transpose(1, 2).flatten(2)
        if variant.attention == "everything alike":
            return value.mean(dim=2, keepdim=True).expand_as(query).transpose(1, 2).flatten(2)
        if variant.causal and variant.only is None:  # what lies behind the last query is hidden
            end = start + query.shape[2]
            key, value, mask = key[:, :, :end], value[:, :, :end], mask[:, :end]
        scores = query @ key.transpose(-1, -2) / math.sqrt(self.shape.head_size)
        columns = torch.arange(key.shape[2])
        here = torch.arange(start, start + query.shape[2])[:, None]
        seen = torch.ones(query.shape[2], key.shape[2], dtype=torch.bool)
        window = self.shape.window if variant.window == -1 else variant.window
        if variant.only is not None:
            seen = seen & (columns >= variant.only[0]) & (columns < variant.only[1])
        else:
            if variant.causal:
                seen = seen & (columns <= here)
            if window is not None:
                seen = seen & (columns > here - window)
        seen = seen & ((columns >= variant.forget) | (here < variant.forget))
        seen = seen[None].expand(mask.shape[0], -1, -1)
        if variant.padding_hidden:
            seen = seen & mask.bool()[:, None, :]
        # A query under padding sees nothing; its result is never used, and must not be NaN.
        seen = seen | (columns == here)
        weights = scores.masked_fill(~seen[:, None], -math.inf).softmax(dim=-1)
        return (weights @ value).transpose(1, 2).flatten(2)


def _rotate(heads: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """Rotate the first ``cos.shape[-1]`` dimensions of each head, (rows, heads, length, size)."""
    cos, sin = cos[:, None], sin[:, None]
    turned, rest = heads.split([cos.shape[-1], heads.shape[-1] - cos.shape[-1]], dim=-1)
    first, second = turned.chunk(2, dim=-1)
    turned = turned * cos + torch.cat([-second, first], dim=-1) * sin
    return torch.cat([turned, rest], dim=-1)
