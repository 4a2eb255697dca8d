"""What a caller may give besides plain ids: embeddings, positions, other configurations."""

from __future__ import annotations

from dataclasses import replace

import torch

from checks import adapt
from checks.bench import DTYPES, Bench, positions_of
from checks.compare import TOLERANCES, relative_error
from checks.errors import Unsupported
from checks.models import TINY
from checks.observation import Flaw, Run, Step
from checks.scenarios.registry import scenario

_WINDOW = 5


@scenario("inputs-embeds")
def inputs_embeds(bench: Bench) -> Run:
    """A prompt as embeddings, as multimodal and soft-prompt code gives it.

    Its ids are unknown to generate, so the crossing cannot run them again.
    """
    if not adapt.accepts(bench.model.prepare_inputs_for_generation, "inputs_embeds"):
        raise Unsupported("no_feature", "generate takes no inputs_embeds here")
    return bench.generate(bench.prompt(bench.boundary - 4), 8, as_embeddings=True)


@scenario("explicit-position-ids")
def explicit_position_ids(bench: Bench) -> Run:
    """position_ids passed to generate, as packing and prompt caching code does."""
    prompt = bench.prompt(bench.boundary - 4)
    positions = positions_of(prompt.new_ones(prompt.shape))
    return bench.generate(prompt, 8, position_ids=bench.to_device(positions))


@scenario("sliding-window", replace(TINY, window=_WINDOW))
def sliding_window(bench: Bench) -> Run:
    """A model with a sliding window smaller than O."""
    return bench.generate(bench.prompt(bench.boundary - 4), 8)


@scenario("config-in-rope-dict", own_control=True)
def config_in_rope_dict(bench: Bench) -> Run:
    """O given only inside the rope dictionary, as newer documentation shows it.

    It may be honoured or refused; it must not silently become another O.
    """
    try:
        config = adapt.build_config(
            bench.spec, bench.shape, bench.case.attention, original_in_rope_dict_only=True
        )
    except Unsupported as refusal:
        return Run(notes=(f"refused: {refusal}"[:200],))
    case = bench.case
    model = adapt.model_of(bench.spec, config, case.attention, case.device, DTYPES[case.dtype])
    inner = replace(bench, model=model)
    steps = []
    for length in (-1, 0, 1, 4):
        tokens = inner.prompt(inner.boundary + length)
        mask = torch.ones_like(tokens)
        logits = inner.uncached(tokens, mask)
        # Whether this model handles the crossing is another question; here the reference decides.
        steps.append(Step(tokens, mask, logits, expected=logits))
    return Run(tuple(steps), flaws=_not_as_usual(bench, inner))


def _not_as_usual(bench: Bench, inner: Bench) -> tuple[Flaw, ...]:
    """Generation must be the same as where O is given in every place."""
    prompt = bench.prompt(bench.boundary - 4)
    usual, seen = bench.generate(prompt, 8), inner.generate(prompt, 8)
    for one, other in zip(usual.steps, seen.steps):
        error = float(relative_error(other.logits, one.logits).max())
        if not error <= TOLERANCES[bench.case.dtype].agree:
            words = f"after {one.length} tokens generation isn't as with O in every place"
            return (Flaw("unclassified", words, error),)
    return ()
