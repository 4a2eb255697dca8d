"""Below generate: the forward by hand, the rotary tables, one instance over changing lengths."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from checks import adapt
from checks.bench import Bench, positions_of
from checks.compare import TOLERANCES
from checks.longrope import rotary_tables
from checks.observation import Flaw, Recorder, Run, Step
from checks.scenarios.registry import scenario


@scenario("forward-loop")
def forward_loop(bench: Bench) -> Run:
    """A hand-written decoding loop over forward with a cache.

    The library makes no promise here: forward cannot run again what it isn't given. The record
    says what happens.
    """
    text = bench.prompt(bench.boundary + 4)
    name = adapt.cache_argument(bench.model)
    cache, fed, steps, recorder = None, 0, [], Recorder()
    for length in range(bench.boundary - 4, text.shape[1] + 1):
        tokens = text[:, :length]
        mask = torch.ones_like(tokens)
        step, output = bench.forward_step(
            tokens,
            mask,
            recorder,
            input_ids=bench.to_device(tokens[:, fed:]),
            attention_mask=bench.to_device(mask),
            position_ids=bench.to_device(positions_of(mask)[:, fed:]),
            use_cache=True,
            **{name: cache},
        )
        cache, fed = adapt.returned_cache(output), length
        steps.append(step)
    note = "transformers promises nothing for a loop over forward"
    return Run(tuple(steps), tuple(recorder.calls), notes=(note,))


@scenario("rotary-probe")
def rotary_probe(bench: Bench) -> Run:
    """The tables themselves: cos and sin at O-1, O, O+1, then O again.

    Short, short, long, short, each with its scaling, whatever was asked for before.
    """
    flaws, worst = [], 0.0
    for length in (bench.boundary - 1, bench.boundary, bench.boundary + 1, bench.boundary):
        positions = torch.arange(length)[None]
        seen = torch.cat(adapt.rotary_tables(bench.model, positions), dim=-1)
        error = _table_error(bench, positions, seen, length > bench.boundary)
        worst = max(worst, error)
        if not error <= TOLERANCES["float32"].agree:
            flaws.append(_name_table(bench, positions, seen, length > bench.boundary, error))
    return Run(flaws=tuple(flaws), reference_error=worst)


def _table_error(
    bench: Bench,
    positions: torch.Tensor,
    seen: torch.Tensor,
    long: bool,
    scaling: float | None = None,
) -> float:
    sets = torch.full_like(positions, long, dtype=torch.bool)
    right = torch.cat(rotary_tables(bench.shape, positions, sets, scaling), dim=-1)
    error = (seen.double() - right).abs().max() / right.abs().max()
    return float(error) if bool(seen.isfinite().all()) else float("inf")


def _name_table(
    bench: Bench, positions: torch.Tensor, seen: torch.Tensor, long: bool, error: float
) -> Flaw:
    """Which mistake gives this table. At position 0 cos is 1, so there it shows its scaling."""
    where = f"at length {positions.shape[1]}"
    if not bool(seen.isfinite().all()):
        return Flaw("non_finite", f"{where} the tables aren't finite", error)
    scaling, tolerance = float(seen[0, 0, 0]), TOLERANCES["float32"].agree
    if _table_error(bench, positions, seen, long, scaling) <= tolerance:
        return Flaw("wrong_scaling", f"{where} scaled by {scaling:.4f}", error)
    if _table_error(bench, positions, seen, not long, scaling) <= tolerance:
        kind = "short" if long else "long"
        return Flaw("wrong_factor", f"{where} {kind} factors, scaled by {scaling:.4f}", error)
    return Flaw("unclassified", f"{where} the tables are off by {error:.2g}", error)


@scenario("regime-leak", own_control=True)
def regime_leak(bench: Bench) -> Run:
    """A server that answers short and long requests in turn with one instance."""
    fresh = Bench.build(bench.case, bench.base, crossing=bench.crossing)
    steps: list[Step] = []
    for length in (5, 12, 5, 12, 5):
        tokens = bench.prompt(length)
        mask = torch.ones_like(tokens)
        logits = bench.uncached(tokens, mask)
        if len(steps) >= 2:
            # The instance of oracle U must not have seen the other regime either.
            fresh = Bench.build(bench.case, bench.base, crossing=bench.crossing)
        steps.append(Step(tokens, mask, logits, expected=fresh.uncached(tokens, mask)))
    return Run(tuple(steps))


@scenario("compiled", own_control=True)
def compiled(bench: Bench) -> Run:
    """A compiled model over changing lengths: the choice of factors must not be baked in."""
    torch._dynamo.reset()
    try:
        return _compiled(bench, (5, 12, 5, 9, 8))
    finally:
        torch._dynamo.reset()


def _compiled(bench: Bench, lengths: Sequence[int]) -> Run:
    # What a model makes of itself in its first forward, dynamo traces for seconds; a short forward
    # beforehand leaves everything in place that the longer ones could bake in.
    bench.uncached(bench.prompt(lengths[0]), torch.ones_like(bench.prompt(lengths[0])))
    model: Any = torch.compile(bench.model, backend="eager", dynamic=True)
    steps = []
    for length in lengths:
        tokens = bench.prompt(length)
        mask = torch.ones_like(tokens)
        with torch.no_grad():
            output = model(input_ids=bench.to_device(tokens), use_cache=False, return_dict=True)
        steps.append(Step(tokens, mask, adapt.logits_after(output)))
    # Oracle U runs on the same model, uncompiled, but only after the compiled forwards.
    return bench.own(Run(tuple(steps)))
