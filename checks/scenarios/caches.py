"""Caches of another kind, caches handed from call to call, caches cut back."""

from __future__ import annotations

from dataclasses import replace

import torch

from checks import adapt
from checks.bench import Bench
from checks.observation import Flaw, Run
from checks.scenarios.registry import scenario


@scenario("static-cache")
def static_cache(bench: Bench) -> Run:
    """A cache of fixed size, as one uses it to compile the decoding."""
    run = bench.generate(bench.prompt(bench.boundary - 4), 8, cache_implementation="static")
    kind = type(adapt.find_cache(run.output.values())).__name__
    if "Static" in kind:
        return run
    return replace(run, notes=(*run.notes, f"asked for a static cache, a {kind} came back"))


@scenario("second-turn")
def second_turn(bench: Bench) -> Run:
    """A chat: the cache of a first turn, still below O, goes into a second one that passes O."""
    first = bench.generate(bench.prompt(bench.boundary - 3), 2)
    return first + _continue(bench, first, bench.prompt(3, stream="second turn"), 3)


@scenario("continue-after-crossing")
def continue_after_crossing(bench: Bench) -> Run:
    """A chat whose first turn crossed: its cache goes into the next turn."""
    first = bench.generate(bench.prompt(bench.boundary - 2), 5)
    length = first.output.sequences.shape[1]
    held = adapt.cache_length(adapt.returned_cache(first.output))
    if held != length - 1:
        flaw = Flaw("truncated_cache", f"the cache holds {held} of {length - 1} tokens")
        first = replace(first, flaws=(flaw,))
    return first + _continue(bench, first, bench.prompt(2, stream="second turn"), 3)


@scenario("crop-back")
def crop_back(bench: Bench) -> Run:
    """An answer that crossed is taken back: the cache is cropped to below O, and goes on there."""
    first = bench.generate(bench.prompt(bench.boundary - 2), 5)
    keep, cache = bench.boundary - 2, adapt.returned_cache(first.output)
    held = adapt.cache_length(cache)
    if held < keep:
        flaw = Flaw("truncated_cache", f"the cache holds {held} tokens, and {keep} are to be kept")
        return replace(first, flaws=(flaw,))
    cache = adapt.crop_cache(cache, keep)
    text = first.output.sequences.cpu()[:, : keep + 1]
    again = bench.generate(text, 2, **{adapt.cache_argument(bench.model): cache})
    return first + again


@scenario("chunked-prefill")
def chunked_prefill(bench: Bench) -> Run:
    """A long prompt, prefilled in chunks to save memory: early chunks end below O."""
    adapt.require_option(bench.model, "prefill_chunk_size")
    return bench.generate(bench.prompt(bench.boundary + 4), 3, prefill_chunk_size=4)


def _continue(bench: Bench, first: Run, said: torch.Tensor, new_tokens: int) -> Run:
    """A next call on the text of *first* and what the user *said*, with the cache of *first*."""
    text = torch.cat([first.output.sequences.cpu(), said], dim=1)
    cache = adapt.returned_cache(first.output)
    return bench.generate(text, new_tokens, **{adapt.cache_argument(bench.model): cache})
