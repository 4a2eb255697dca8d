"""Plain greedy generation: how everybody meets the crossing first."""

from __future__ import annotations

from checks.bench import Bench
from checks.models import TRUE_SCALE
from checks.observation import Run
from checks.scenarios.registry import scenario


@scenario("below-boundary")
def below_boundary(bench: Bench) -> Run:
    """A short chat that stays within O tokens. It never crosses, and must simply be right."""
    return bench.generate(bench.prompt(bench.boundary - 4), 5)


@scenario("decode-crossing")
def decode_crossing(bench: Bench) -> Run:
    """A prompt that fits into O, and an answer that grows past it."""
    return bench.generate(bench.prompt(bench.boundary - 4), 8)


@scenario("prompt-at-boundary")
def prompt_at_boundary(bench: Bench) -> Run:
    """A prompt cut to exactly O tokens, so that the second forward is the crossing."""
    return bench.generate(bench.prompt(bench.boundary), 4)


@scenario("prompt-past-boundary")
def prompt_past_boundary(bench: Bench) -> Run:
    """A long document as prompt: long factors from the start, and nothing to clear."""
    return bench.generate(bench.prompt(bench.boundary + 1), 4)


@scenario("true-scale", TRUE_SCALE, own_control=True)
def true_scale(bench: Bench) -> Run:
    """The published models' O of 4,096: a prompt just below it, and an answer across."""
    return bench.generate(bench.prompt(bench.boundary - 3, rows=1), 8)
