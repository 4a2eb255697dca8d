"""Batches with padding: rows of different length share one forward."""

from __future__ import annotations

from checks.bench import Bench
from checks.observation import Run
from checks.scenarios.registry import scenario


@scenario("left-padded")
def left_padded(bench: Bench) -> Run:
    """Two prompts of different length in one batch, the shorter padded on its left."""
    longer = bench.boundary - 3
    tokens, mask = bench.left_padded([longer, longer - 2])
    return bench.generate(tokens, 7, mask=mask)


@scenario("all-rows-padded")
def all_rows_padded(bench: Bench) -> Run:
    """A batch padded to a multiple, so that every row starts with padding.

    The batch gets wider than O before any row is longer than O, and the rows cross later: the
    switch must follow the real length on both sides.
    """
    longer = bench.boundary - 4
    tokens, mask = bench.padded_to(longer + 2, [longer, longer - 1])
    return bench.generate(tokens, 9, mask=mask)
