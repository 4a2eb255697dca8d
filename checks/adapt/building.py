"""Configurations and models, in whatever spelling a release takes."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from typing import Any, cast

import torch

from checks.errors import CheckError, ImportFailed, Unsupported
from checks.models import PAD, SPECS, ModelSpec, Shape, fill_weights


@dataclass(frozen=True)
class ModelClasses:
    """A release's classes for one model."""

    config: Any
    model: Any


def load_classes(spec: ModelSpec) -> ModelClasses:
    """Import a model's modules, and no other part of transformers.

    Raises:
        Unsupported: ``no_model``, this release doesn't have it.
        ImportFailed: it has it, and can't import it here.
    """
    package = f"transformers.models.{spec.package}"
    try:
        configuration = importlib.import_module(f"{package}.configuration_{spec.package}")
        modeling = importlib.import_module(f"{package}.modeling_{spec.package}")
    except Exception as error:  # noqa: BLE001 - a broken import may raise anything
        name = getattr(error, "name", None) if isinstance(error, ModuleNotFoundError) else None
        if name is not None and name.startswith(package):
            raise Unsupported("no_model", f"no {package} in this release") from None
        message = f"{package}: {type(error).__name__}: {error}"
        raise ImportFailed("import_failed", message[:300]) from None
    return ModelClasses(
        getattr(configuration, spec.config_class), getattr(modeling, spec.model_class)
    )


def _rope_dictionaries(shape: Shape, *, originals: Iterable[bool]) -> Iterator[dict[str, Any]]:
    """The rope dictionary in every spelling that a release may want, newest first.

    Older releases take exactly the three fields of the published configurations, some know the
    kind only as ``su``, some want the ratio of extension spelled out.

    Args:
        originals: whether to give O in the dictionary, in the order to try.
    """
    factors: dict[str, Any] = {
        "short_factor": list(shape.short_factors),
        "long_factor": list(shape.long_factors),
    }
    if shape.scalings is not None:
        factors["short_mscale"], factors["long_mscale"] = shape.scalings
    ratio = {"factor": shape.longest / shape.original}
    for with_original in originals:
        original = {"original_max_position_embeddings": shape.original} if with_original else {}
        for kind in ({"rope_type": "longrope"}, {"type": "longrope"}, {"type": "su"}):
            for extension in ({}, ratio):
                yield {**kind, **factors, **original, **extension}


def build_config(
    spec: ModelSpec, shape: Shape, attention: str, *, original_in_rope_dict_only: bool = False
) -> Any:
    """A configuration of *shape* in this release's spelling.

    Args:
        original_in_rope_dict_only: give O nowhere but in the rope dictionary.

    Raises:
        Unsupported: ``no_feature``, the release refuses every spelling of LongRoPE.
        CheckError: it took one, and holds something else than it was given.
    """
    arguments = config_arguments(
        spec, shape, attention, original_in_rope_dict_only=original_in_rope_dict_only
    )
    return load_classes(spec).config(**arguments)


def config_arguments(
    spec: ModelSpec, shape: Shape, attention: str, *, original_in_rope_dict_only: bool = False
) -> dict[str, Any]:
    """The arguments for a configuration that this release takes; see :func:`build_config`."""
    return deepcopy(_accepted(spec.name, shape, attention, original_in_rope_dict_only))


@cache
def _accepted(
    model: str, shape: Shape, attention: str, original_in_rope_dict_only: bool
) -> dict[str, Any]:
    """What a release takes doesn't change while it runs, so it is tried out once."""
    spec = SPECS[model]
    config_class = load_classes(spec).config
    common: dict[str, Any] = {
        "vocab_size": shape.vocabulary,
        "hidden_size": shape.hidden,
        "intermediate_size": shape.intermediate,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.key_heads,
        "max_position_embeddings": shape.longest,
        "rope_theta": shape.theta,
        "rms_norm_eps": shape.norm_epsilon,
        "pad_token_id": PAD,
        "bos_token_id": 1,
        "eos_token_id": None,
        "attn_implementation": attention,
        "tie_word_embeddings": False,
        **deepcopy(dict(spec.options)),
    }
    if shape.window is not None:
        common["sliding_window"] = shape.window
    if shape.rotary_fraction != 1.0:
        common["partial_rotary_factor"] = shape.rotary_fraction
    originals = [False]
    if original_in_rope_dict_only:
        originals = [True]
    else:
        common["original_max_position_embeddings"] = shape.original
        if spec.original_in_rope_dict:
            originals = [True, False]
    refusals = []
    for rope in _rope_dictionaries(shape, originals=originals):
        arguments = {**common, "rope_scaling": rope}
        eager = {**arguments, "attn_implementation": "eager"}
        try:
            config = config_class(**deepcopy(arguments))  # some write into what they are given
            # Some configurations take any spelling, and leave it to the model to refuse.
            load_classes(spec).model(config_class(**deepcopy(eager)))
        except Exception as error:  # noqa: BLE001 - every release has an exception of its own
            refusals.append(f"{type(error).__name__}: {error}")
            continue
        held = rope_dictionary(config)
        if list(held.get("short_factor", ())) != list(shape.short_factors):
            raise CheckError(f"the configuration holds other factors than it was given: {held}")
        return arguments
    raise Unsupported("no_feature", f"LongRoPE refused: {refusals[0][:200]}")


def rope_dictionary(config: Any) -> Mapping[str, Any]:
    """The rope dictionary that a configuration holds, under whatever name."""
    for name in ("rope_parameters", "rope_scaling"):
        value = getattr(config, name, None)
        if isinstance(value, Mapping) and value:
            return value
    return {}


def build_model(
    spec: ModelSpec, shape: Shape, attention: str, device: str, dtype: torch.dtype
) -> torch.nn.Module:
    """A model of *shape* with our weights, in evaluation mode, that nothing was run on.

    Raises:
        Unsupported: ``no_model``, ``no_feature`` or ``no_backend``.
        CheckError: the release uses another attention implementation than asked for, silently.
    """
    # To copy one takes half the time of building it, and a cell needs some hundred.
    return deepcopy(_untouched(spec.name, shape, attention, device, dtype))


@cache
def _untouched(
    model: str, shape: Shape, attention: str, device: str, dtype: torch.dtype
) -> torch.nn.Module:
    spec = SPECS[model]
    return model_of(spec, build_config(spec, shape, attention), attention, device, dtype)


def model_of(
    spec: ModelSpec, config: Any, attention: str, device: str, dtype: torch.dtype
) -> torch.nn.Module:
    """Like :func:`build_model`, from a configuration."""
    try:
        model = load_classes(spec).model(config)
    except (ImportError, ValueError, NotImplementedError) as error:
        if attention == "eager":
            raise
        raise Unsupported("no_backend", f"{attention}: {error}"[:300]) from None
    fill_weights(model)
    model = model.to(device=device, dtype=dtype).eval()
    model.generation_config.eos_token_id = None
    used = attention_used(model)
    if used != attention:
        raise CheckError(f"asked for {attention} attention, the model uses {used}")
    return cast(torch.nn.Module, model)


def attention_used(model: torch.nn.Module) -> str:
    """The attention implementation that a model really runs.

    Older releases have a class for each, newer ones look it up by the configuration's word.
    """
    names = {type(part).__name__ for part in model.modules()}
    if any("FlashAttention2" in name for name in names):
        return "flash_attention_2"
    if any("SdpaAttention" in name for name in names):
        return "sdpa"
    return str(getattr(model.config, "_attn_implementation", "unknown"))
