"""Everything that differs between releases of transformers, adapted in one place.

Nothing here looks at a version number. What a release calls a thing, which spellings of a
configuration it takes and what it returns are found out by looking at what is there.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from typing import Any

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
    spec: ModelSpec,
    shape: Shape,
    attention: str,
    device: str,
    dtype: torch.dtype,
    *,
    config: Any = None,
) -> torch.nn.Module:
    """A model of *shape* with our weights, in evaluation mode.

    Raises:
        Unsupported: ``no_model``, ``no_feature`` or ``no_backend``.
        CheckError: the release uses another attention implementation than asked for, silently.
    """
    classes = load_classes(spec)
    if config is None:
        config = build_config(spec, shape, attention)
    try:
        model = classes.model(config)
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
    return model


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


def is_cache(value: Any) -> bool:
    """Whether *value* holds keys and values: by what it is, not by what it is called.

    Either an object that tells its sequence length, or the older nested tuple of tensors.
    """
    if callable(getattr(value, "get_seq_length", None)):
        return True
    return (
        isinstance(value, tuple)
        and len(value) > 0
        and isinstance(value[0], tuple)
        and len(value[0]) >= 2
        and all(isinstance(part, torch.Tensor) and part.dim() == 4 for part in value[0][:2])
    )


def find_cache(values: Iterable[Any]) -> Any:
    """The first cache among *values*, or None."""
    return next((value for value in values if is_cache(value)), None)


def cache_length(cache: Any) -> int:
    """Tokens that *cache* holds."""
    if isinstance(cache, tuple):
        return int(cache[0][0].shape[2])
    return int(cache.get_seq_length())


def cache_argument(model: torch.nn.Module) -> str:
    """What this release calls the cache: the field of a forward's output that holds one.

    Raises:
        CheckError: a forward with ``use_cache=True`` returns nothing that looks like a cache.
    """
    device = next(model.parameters()).device
    output = call(model, input_ids=torch.full((1, 1), 3, device=device), use_cache=True)
    for name, value in output.items():
        if is_cache(value):
            return str(name)
    raise CheckError(f"no cache in the output of forward: {list(output)}")


def returned_cache(output: Mapping[str, Any]) -> Any:
    """The cache in a ModelOutput.

    Raises:
        Unsupported: ``no_feature``, generate or forward gave none back.
    """
    cache = find_cache(output.values())
    if cache is None:
        raise Unsupported("no_feature", "no cache is returned")
    return cache


def crop_cache(cache: Any, length: int) -> Any:
    """*cache* cut to its first *length* tokens.

    Raises:
        Unsupported: ``no_feature``, this kind of cache cannot be cropped.
        CheckError: it was, and holds another number of tokens.
    """
    if isinstance(cache, tuple):
        return tuple(tuple(part[:, :, :length] for part in layer) for layer in cache)
    if not callable(getattr(cache, "crop", None)):
        raise Unsupported("no_feature", f"{type(cache).__name__} cannot be cropped")
    try:
        cache.crop(length)
    except ValueError:  # newer caches are told how many tokens to remove
        cache.crop(length - cache_length(cache))
    if cache_length(cache) != length:
        raise CheckError(f"cropped to {length} tokens, the cache holds {cache_length(cache)}")
    return cache


def call(model: torch.nn.Module, **arguments: Any) -> Any:
    """One forward without gradients, as a ModelOutput."""
    with torch.no_grad():
        return model(return_dict=True, **arguments)


def logits_after(output: Any, column: int = -1) -> torch.Tensor:
    """Logits at one column, the last by default: (rows, vocabulary) float32 on the CPU."""
    logits: torch.Tensor = output.logits
    return logits[:, column].detach().to(device="cpu", dtype=torch.float32)


def rotary_tables(
    model: torch.nn.Module, positions: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """What the model's rotary embedding gives for *positions*.

    Older releases have one in every layer, some are asked by length and not by positions.

    Args:
        positions: 0, 1, 2, ... in one row, (1, length).

    Returns:
        cos and sin, (1, length, rotated) float32.

    Raises:
        CheckError: the model has no module that looks like one.
    """
    rotary = next(
        (
            part
            for name, part in model.named_modules()
            if "RotaryEmbedding" in type(part).__name__
            and not any(word in name for word in ("image", "audio", "vision"))
        ),
        None,
    )
    if rotary is None:
        raise CheckError("the model has no rotary embedding")
    device = next(model.parameters()).device
    length = int(positions.shape[1])
    like = torch.zeros(1, 1, length, 2, device=device)
    if accepts(rotary.forward, "position_ids"):
        with torch.no_grad():
            cos, sin = rotary(like, position_ids=positions.to(device))
    else:
        with torch.no_grad():
            cos, sin = rotary(like, seq_len=length)
    return cos.reshape(1, length, -1).cpu(), sin.reshape(1, length, -1).cpu()


def generate_batch(
    model: Any, prompts: Sequence[Sequence[int]], new_tokens: int
) -> list[list[int]]:
    """Serve *prompts* by continuous batching, greedily.

    Its cache is sized here; left alone, it would take most of the machine's memory.

    Returns:
        Prompt and answer of each request, in order.

    Raises:
        Unsupported: ``no_feature``, this release has no continuous batching.
        RuntimeError: the serving loop ended without an answer to every request.
    """
    if not callable(getattr(model, "generate_batch", None)):
        raise Unsupported("no_feature", "no generate_batch in this release")
    from transformers.generation import configuration_utils as configurations

    sizes = {"num_blocks": 16, "max_batch_tokens": 64}
    config = configurations.GenerationConfig(
        max_new_tokens=new_tokens, do_sample=False, eos_token_id=-1, pad_token_id=PAD
    )
    options: dict[str, Any] = {"generation_config": config, "progress_bar": False}
    if accepts(model.generate_batch, "continuous_batching_config"):
        own_class = configurations.ContinuousBatchingConfig
        page = "page_size" if accepts(own_class, "page_size") else "block_size"
        options["continuous_batching_config"] = own_class(**{**sizes, page: 16})
    else:
        for name, value in {**sizes, "block_size": 16}.items():
            setattr(config, name, value)
    with _little_memory():
        answers = model.generate_batch([list(prompt) for prompt in prompts], **options)
    values = list(answers.values()) if isinstance(answers, Mapping) else list(answers)
    by_prompt = {tuple(value.prompt_ids): list(value.generated_tokens) for value in values}
    missing = [prompt for prompt in prompts if tuple(prompt) not in by_prompt]
    if missing:
        raise RuntimeError(f"{len(missing)} of {len(prompts)} requests were not answered")
    return [[*prompt, *by_prompt[tuple(prompt)]] for prompt in prompts]


@contextmanager
def _little_memory() -> Iterator[None]:
    """Let the serving loop believe in a machine of one free gigabyte.

    It measures the machine even where it is told its sizes, and some releases can't do so on a
    CPU without another package.
    """
    name, told = "get_device_and_memory_breakdown", (torch.device("cpu"), 2**30, 0, 0)
    kept = [
        (module, getattr(module, name))
        for key, module in list(sys.modules.items())
        if key.startswith("transformers.generation.continuous_batching") and hasattr(module, name)
    ]
    for module, _ in kept:
        setattr(module, name, lambda: told)
    try:
        yield
    finally:
        for module, function in kept:
            setattr(module, name, function)


def accepts(function: Any, name: str) -> bool:
    """Whether *function* names a parameter *name*."""
    return name in inspect.signature(function).parameters


def generation_option(model: torch.nn.Module, name: str) -> bool:
    """Whether this release's generation has an option *name*."""
    return hasattr(model.generation_config, name)


def require_option(model: torch.nn.Module, name: str) -> None:
    """Insist on a generation option.

    Raises:
        Unsupported: ``no_feature``, this release's generation has no such option.
    """
    if not generation_option(model, name):
        raise Unsupported("no_feature", f"generate has no {name}")


def uncompiled(model: torch.nn.Module) -> dict[str, Any]:
    """Options that keep generate from compiling the model by itself on an accelerator."""
    return {"disable_compile": True} if generation_option(model, "disable_compile") else {}


def logits_processor(function: Any) -> Any:
    """*function* of (ids, scores) as the list that generate takes as ``logits_processor``."""
    from transformers.generation.logits_process import LogitsProcessor, LogitsProcessorList

    class _Observer(LogitsProcessor):  # type: ignore[misc]
        def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
            function(input_ids, scores)
            return scores

        def __deepcopy__(self, memo: Any) -> _Observer:
            return self  # a copy must report to the same place

    return LogitsProcessorList([_Observer()])
