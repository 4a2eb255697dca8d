"""Other ways to choose the next token than greedily: beams, sampling, drafts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from checks import adapt
from checks.bench import DTYPES, Bench
from checks.compare import TOLERANCES, margin, relative_error
from checks.models import SEED, fill_weights
from checks.observation import Flaw, Run
from checks.scenarios.registry import scenario

_NEVER = 10**6


@scenario("beam-search")
def beam_search(bench: Bench) -> Run:
    """Beam search over a text that grows past O: the cache is reordered between steps."""
    prompt = bench.prompt(bench.boundary - 4)
    options: dict[str, Any] = {"num_beams": 3, "output_scores": True, "num_return_sequences": 3}
    run = bench.generate(prompt, 7, **options)
    plain = bench.generate(prompt, 7, use_cache=False, **options)
    # Where two beams tie, either order is right; their scores tell.
    seen, right = run.output.sequences_scores, plain.output.sequences_scores
    error = float(relative_error(seen.cpu()[None], right.cpu()[None]).max())
    same = torch.equal(run.output.sequences, plain.output.sequences)
    if not same and not error <= TOLERANCES[bench.case.dtype].agree:
        flaw = Flaw("unclassified", "cached and uncached beams differ", error)
        return replace(run, flaws=(*run.flaws, flaw))
    return run


@scenario("sampling")
def sampling(bench: Bench) -> Run:
    """Sampling with one seed: with and without a cache, the same text."""
    prompt = bench.prompt(bench.boundary - 4)
    # Without temperature, top-k and top-p nothing stands between the logits and the draw.
    options: dict[str, Any] = {"do_sample": True, "top_k": 0, "top_p": 1.0, "temperature": 1.0}
    runs = []
    for use_cache in (True, False):
        with torch.random.fork_rng():
            torch.manual_seed(SEED)
            runs.append(bench.generate(prompt, 8, use_cache=use_cache, **options))
    run, plain = runs
    # In a lower precision the draw itself may tip; there the logits alone are judged.
    if bench.case.dtype == "float32" and not torch.equal(
        run.output.sequences, plain.output.sequences
    ):
        flaw = Flaw("unclassified", "the same seed gives another text with a cache than without")
        return replace(run, flaws=(*run.flaws, flaw))
    return run


@scenario("assisted-decoding")
def assisted_decoding(bench: Bench) -> Run:
    """Speculative decoding: drafts by prompt look-up, by another model, and by the model itself.

    The main model reads several drafted tokens in one forward, and may cross among them.
    """
    prompt = bench.prompt(bench.boundary - 3, rows=1)
    # Something to look up: the prompt repeats its beginning.
    prompt[:, -2:] = prompt[:, :2]
    adapt.require_option(bench.model, "prompt_lookup_num_tokens")
    drafts = [
        ("prompt look-up", {"prompt_lookup_num_tokens": 3}),
        ("another model", {"assistant_model": _draft(bench, SEED + 1)}),
        ("the model itself", {"assistant_model": _draft(bench, SEED)}),
    ]
    total = Run()
    for name, options in drafts:
        # Some drafting code needs an end of sequence to look for: one that nothing can be.
        run = bench.generate(prompt, 8, drafted=True, eos_token_id=_NEVER, **options)
        total = total + replace(run, flaws=_not_greedy(bench, prompt, run, name))
    return total


def _draft(bench: Bench, seed: int) -> Any:
    model = adapt.build_model(
        bench.spec,
        bench.shape,
        bench.case.attention,
        bench.case.device,
        DTYPES[bench.case.dtype],
    )
    fill_weights(model, seed)
    model.generation_config.eos_token_id = _NEVER
    return model


def _not_greedy(bench: Bench, prompt: torch.Tensor, run: Run, name: str) -> tuple[Flaw, ...]:
    """Drafts may only make it faster: the text must be that of greedy search."""
    text = run.output.sequences.cpu()
    lengths = range(prompt.shape[1], text.shape[1])
    for length, expected in zip(lengths, bench.uncached_through(text, lengths)):
        clear = float(margin(expected)) > 10 * TOLERANCES[bench.case.dtype].agree
        if clear and int(expected.argmax()) != int(text[0, length]):
            return (Flaw("unclassified", f"drafted by {name}: not greedy after {length} tokens"),)
    return ()
