"""Forwards and generation: what they take, what they return, and where the cache is in it."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from typing import Any

import torch

from checks.errors import CheckError, Unsupported


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
