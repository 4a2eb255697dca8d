"""Oracle R: the model itself, computed independently in float64.

Written from the published descriptions, and from nothing in transformers: Phi-3's decoder
(pre-norm, grouped-query attention, gated SiLU), rotated as :mod:`checks.longrope` has it.

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
from checks.longrope import is_long, own_scalings, rotary_tables
from checks.models import Shape

_CHUNK = 512
"""Queries attended at a time, so that a long prefix doesn't need length x length numbers."""

_LARGEST = 2**22
"""Attention weights computed at a time where many variants share a forward."""


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
        first = min(lengths) - 1
        logits = self._forward(tokens, mask, [variant], first)[0]
        return [logits[:, length - 1 - first] for length in lengths]

    def logits_of(
        self, tokens: torch.Tensor, mask: torch.Tensor, variants: Sequence[Variant]
    ) -> torch.Tensor:
        """Logits at the last position under each of many variants, which share forwards.

        Returns:
            (variants, rows, vocabulary) float64.
        """
        rows, length = tokens.shape
        groups: dict[str | None, list[int]] = {}
        for index, variant in enumerate(variants):
            groups.setdefault(variant.attention, []).append(index)
        together = max(1, _LARGEST // (rows * length * length * self.shape.heads))
        result = torch.empty(
            len(variants), rows, self.shape.vocabulary, dtype=torch.float64, device="cpu"
        )
        for members in groups.values():
            for start in range(0, len(members), together):
                chosen = members[start : start + together]
                alike = [variants[index] for index in chosen]
                result[chosen] = self._forward(tokens, mask, alike, length - 1)[:, :, -1]
        return result

    def _forward(
        self, tokens: torch.Tensor, mask: torch.Tensor, variants: Sequence[Variant], first: int
    ) -> torch.Tensor:
        """Logits from column *first* on: (variants, rows, columns, vocabulary) float64.

        The variants must have the same ``attention``.
        """
        shape, length, count = self.shape, tokens.shape[1], len(variants)
        told = [_rotations(shape, mask, variant) for variant in variants]
        cos, sin = rotary_tables(shape, *(torch.cat(parts) for parts in zip(*told)))
        hidden = self._get("embed_tokens.weight")[tokens].repeat(count, 1, 1)
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
                    self._attend(query[:, :, at : at + _CHUNK], key, value, mask, at, variants)
                    for at in range(start, length, _CHUNK)
                ],
                dim=1,
            )
            hidden = hidden[:, start:] + self._linear(f"{prefix}.self_attn.o_proj", mixed)
            normed = self._norm(f"{prefix}.post_attention_layernorm", hidden)
            hidden = hidden + self._feed_forward(prefix, normed)
        logits = self._linear("lm_head", self._norm("norm", hidden))
        return logits.unflatten(0, (count, tokens.shape[0]))

    def _attend(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        mask: torch.Tensor,
        start: int,
        variants: Sequence[Variant],
    ) -> torch.Tensor:
        """Attention of the queries from column *start* on: (rows, queries, heads * head_size)."""
        if variants[0].attention == "nothing":
            return torch.zeros_like(query).transpose(1, 2).flatten(2)
        if variants[0].attention == "everything alike":
            return value.mean(dim=2, keepdim=True).expand_as(query).transpose(1, 2).flatten(2)
        end = start + query.shape[2]
        if all(variant.causal and variant.only is None for variant in variants):
            # What lies behind the last query is hidden.
            key, value, mask = key[:, :, :end], value[:, :, :end], mask[:, :end]
        scores = query @ key.transpose(-1, -2) / math.sqrt(self.shape.head_size)
        seen = torch.cat([_seen(self.shape, mask, variant, start, end) for variant in variants])
        weights = scores.masked_fill_(~seen[:, None], -math.inf).softmax(dim=-1)
        return (weights @ value).transpose(1, 2).flatten(2)


def _rotations(
    shape: Shape, mask: torch.Tensor, variant: Variant
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Position, set and scaling of every token as *variant* has them, (rows, length) each."""
    positions, long, scaling = variant.positions, variant.long, variant.scaling
    if positions is None:
        positions = (mask.long().cumsum(dim=-1) - 1).clamp_min(0)
    if long is None:
        long = is_long(shape, mask)
    if not isinstance(long, torch.Tensor):
        long = torch.full_like(mask, long, dtype=torch.bool)
    if scaling is None:
        scaling = own_scalings(shape)[long.long()]
    scaling = torch.as_tensor(scaling, dtype=torch.float64)
    return positions, long, scaling.expand(long.shape)


def _seen(shape: Shape, mask: torch.Tensor, variant: Variant, start: int, end: int) -> torch.Tensor:
    """What the queries in columns *start* to *end* attend to: (rows, queries, keys) bool."""
    columns, here = torch.arange(mask.shape[1]), torch.arange(start, end)[:, None]
    seen = torch.ones(end - start, mask.shape[1], dtype=torch.bool)
    window = shape.window if variant.window == -1 else variant.window
    if variant.only is not None:
        seen = seen & (columns >= variant.only[0]) & (columns < variant.only[1])
    else:
        if variant.causal:
            seen = seen & (columns <= here)
        if window is not None:
            seen = seen & (columns > here - window)
    if variant.forget:
        seen = seen & ((columns >= variant.forget) | (here < variant.forget))
    seen = seen[None].expand(mask.shape[0], -1, -1)
    if variant.padding_hidden:
        seen = seen & mask.bool()[:, None, :]
    # A query under padding sees nothing; its result is never used, and must not be NaN.
    return seen | (columns == here)


def _rotate(heads: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """Rotate the first ``cos.shape[-1]`` dimensions of each head, (rows, heads, length, size)."""
    cos, sin = cos[:, None], sin[:, None]
    turned, rest = heads.split([cos.shape[-1], heads.shape[-1] - cos.shape[-1]], dim=-1)
    first, second = turned.chunk(2, dim=-1)
    turned = turned * cos + torch.cat([-second, first], dim=-1) * sin
    return torch.cat([turned, rest], dim=-1)
