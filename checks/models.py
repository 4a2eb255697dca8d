"""The tiny models on which the crossing is measured, and their weights.

Everything here is ours and the same for every release: shapes, factors, seeds. How a release
wants to be told about it is the subject of :mod:`checks.adapt`.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch

SEED = 0
PAD = 0
FIRST_PROMPT_ID = 3
"""Ids below are pad, begin and end; prompts never hold them."""


@dataclass(frozen=True)
class Shape:
    """The size of a model and its LongRoPE.

    Attributes:
        original: O, ``original_max_position_embeddings``, in tokens.
        longest: ``max_position_embeddings``, in tokens.
        short_range, long_range: first and last factor of each set; the others lie evenly between.
            They vary by dimension, since constant factors can hide a defect.
        window: sliding window in tokens, or None.
        rotary_fraction: the part of each head that is rotated.
        scalings: factors on cos and sin below and above O where the architecture has a pair of
            its own (PhiMoE); None for the formula of LongRoPE.
    """

    original: int = 8
    longest: int = 32
    vocabulary: int = 64
    hidden: int = 64
    intermediate: int = 96
    layers: int = 2
    heads: int = 4
    key_heads: int = 2
    theta: float = 10000.0
    norm_epsilon: float = 1e-5
    short_range: tuple[float, float] = (1.0, 1.2)
    long_range: tuple[float, float] = (4.0, 16.0)
    window: int | None = None
    rotary_fraction: float = 1.0
    scalings: tuple[float, float] | None = None

    @property
    def head_size(self) -> int:
        """Width of one attention head."""
        return self.hidden // self.heads

    @property
    def rotated(self) -> int:
        """Rotated dimensions of a head; each factor is for two of them."""
        return int(self.head_size * self.rotary_fraction)

    @property
    def short_factors(self) -> tuple[float, ...]:
        """Factors for sequences up to O."""
        return _evenly(self.short_range, self.rotated // 2)

    @property
    def long_factors(self) -> tuple[float, ...]:
        """Factors for sequences longer than O."""
        return _evenly(self.long_range, self.rotated // 2)

    def out_of_reach(self) -> Shape:
        """The same model with O moved so far out that no scenario crosses it.

        The negative control runs a scenario on this, so it has the same lengths, the same options
        and the same weights, and only the crossing is missing.
        """
        ratio = self.longest // self.original
        return replace(self, original=self.original * 8, longest=self.original * 8 * ratio)


def _evenly(ends: tuple[float, float], count: int) -> tuple[float, ...]:
    first, last = ends
    if count == 1:
        return (first,)
    return tuple(round(first + (last - first) * i / (count - 1), 6) for i in range(count))


TINY = Shape()

TRUE_SCALE = replace(
    # One head and little width: the attention of 4,100 tokens has 17 million weights a head.
    TINY,
    original=4096,
    longest=16384,
    hidden=16,
    intermediate=32,
    heads=1,
    key_heads=1,
)
"""O as in the published models."""


@dataclass(frozen=True)
class ModelSpec:
    """What a model is called in transformers, and what its tiny configuration needs.

    Attributes:
        package: the folder under ``transformers.models``.
        config_class, model_class: names of the classes.
        options: further arguments of its configuration.
        changes: how its shape differs from the plain one.
        architecture: the decoder of :mod:`checks.reference` that computes it, or None.
        original_in_rope_dict: whether its configurations carry O in the rope dictionary.
    """

    name: str
    package: str
    config_class: str
    model_class: str
    options: Mapping[str, Any] = field(default_factory=dict)
    changes: Mapping[str, Any] = field(default_factory=dict)
    architecture: str | None = "dense"
    original_in_rope_dict: bool = False

    def shape(self, base: Shape) -> Shape:
        """*base* with what is special to this model."""
        return replace(base, **self.changes)


# Text alone is measured, so the other towers are as small as their code allows.
_TINY_VISION = {
    "hidden_size": 16,
    "intermediate_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "image_size": 28,
    "patch_size": 14,
    "crop_size": 28,
    "image_token_id": 61,
}
_TINY_AUDIO = {
    "hidden_size": 16,
    "intermediate_size": 16,
    "num_blocks": 2,
    "num_attention_heads": 2,
    "ext_pw_out_channel": 16,
    "depthwise_separable_out_channel": 16,
    "nemo_conv_channels": 16,
    "input_size": 16,
    "time_reduction": 4,
    "audio_token_id": 62,
}

LAST_PROMPT_ID = 60
"""Ids above stand for images and sounds in the multimodal model."""

SPECS: Mapping[str, ModelSpec] = {
    spec.name: spec
    for spec in (
        ModelSpec("phi3", "phi3", "Phi3Config", "Phi3ForCausalLM"),
        ModelSpec(
            "phimoe",
            "phimoe",
            "PhimoeConfig",
            "PhimoeForCausalLM",
            # Routing jumps where two experts tie. With two experts, both chosen, and no jitter,
            # both weigh 1 everywhere, and rounding noise cannot turn into another choice.
            options={
                "num_local_experts": 2,
                "num_experts_per_tok": 2,
                "router_jitter_noise": 0.0,
                "input_jitter_noise": 0.0,
            },
            changes={"scalings": (1.1, 1.4)},
            architecture="experts",
            original_in_rope_dict=True,
        ),
        ModelSpec(
            "phi4_multimodal",
            "phi4_multimodal",
            "Phi4MultimodalConfig",
            "Phi4MultimodalForCausalLM",
            options={"vision_config": _TINY_VISION, "audio_config": _TINY_AUDIO},
            changes={"rotary_fraction": 0.75},
        ),
        ModelSpec("llama", "llama", "LlamaConfig", "LlamaForCausalLM", original_in_rope_dict=True),
    )
}

_NOT_TEXT = ("image", "audio", "vision")


def fill_weights(model: torch.nn.Module, seed: int = SEED) -> None:
    """Give every text parameter a value that depends on its name and *seed* alone.

    Norms become 1. The standard deviation keeps activations of order one and attention far from
    uniform, so that positions matter. A generator for each name keeps the other weights as they
    are when a release adds or renames a parameter.
    """
    with torch.no_grad():
        for name, parameter in sorted(model.named_parameters()):
            if any(word in name for word in _NOT_TEXT):
                continue
            if parameter.dim() == 1 and name.endswith("weight"):
                parameter.fill_(1.0)
                continue
            generator = torch.Generator().manual_seed(zlib.crc32(f"{seed}:{name}".encode()))
            values = torch.randn(parameter.shape, generator=generator)
            deviation = 0.25 if parameter.dim() > 1 else 0.05
            parameter.copy_(values * deviation)


def random_prompt(rows: int, length: int, *, stream: str = "prompt", seed: int = SEED) -> Any:
    """Random ids of text, (rows, length) int64, the same for the same arguments."""
    generator = torch.Generator().manual_seed(zlib.crc32(f"{seed}:{stream}".encode()))
    return torch.randint(FIRST_PROMPT_ID, LAST_PROMPT_ID + 1, (rows, length), generator=generator)
