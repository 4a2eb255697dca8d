"""Continuous batching, whose interface has changed more often than any other."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from checks.adapt.calling import accepts
from checks.errors import Unsupported
from checks.models import PAD


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
