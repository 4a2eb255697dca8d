"""Oracle R against values computed by hand, and against real releases below and above O."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from checks.bench import Bench
from checks.catalog import MODELS, Case
from checks.compare import relative_error
from checks.errors import Unsupported
from checks.longrope import attention_scaling, inverse_frequencies, is_long, rotary_tables
from checks.measure import measure
from checks.models import TINY, Shape
from checks.reference import Reference, Variant

pytestmark = pytest.mark.filterwarnings("default")

# Two rotated pairs, so that every number fits on a slip of paper.
PAPER = Shape(
    original=4,
    longest=16,
    hidden=4,
    heads=1,
    key_heads=1,
    theta=100.0,
    short_range=(1.0, 2.0),
    long_range=(4.0, 8.0),
)


def test_inverse_frequencies_by_hand() -> None:
    """1 / (factor * theta^(2i/d)): theta^(0) = 1 and theta^(2/4) = 10."""
    assert inverse_frequencies(PAPER, long=False).tolist() == pytest.approx([1 / 1, 1 / 20])
    assert inverse_frequencies(PAPER, long=True).tolist() == pytest.approx([1 / 4, 1 / 80])


def test_scaling_by_hand() -> None:
    """sqrt(1 + ln(16/4)/ln(4)) = sqrt(2); 1 where nothing is extended; PhiMoE has its own pair."""
    assert attention_scaling(PAPER, long=True) == pytest.approx(math.sqrt(2))
    assert attention_scaling(PAPER, long=False) == pytest.approx(math.sqrt(2))
    assert attention_scaling(replace(PAPER, longest=4), long=True) == 1.0
    own = replace(PAPER, scalings=(1.1, 1.4))
    assert (attention_scaling(own, False), attention_scaling(own, True)) == (1.1, 1.4)


def test_published_scaling_of_phi3() -> None:
    """4k extended to 128k: the 1.19 that everybody knows."""
    published = replace(PAPER, original=4096, longest=131072)
    assert attention_scaling(published, True) == pytest.approx(1.190238, abs=1e-6)


def test_tables_by_hand() -> None:
    """At position 3: cos and sin of 3/1 and 3/20, times sqrt(2), each half twice."""
    positions = torch.tensor([[3]])
    cos, sin = rotary_tables(PAPER, positions, torch.tensor([[False]]))
    scale = math.sqrt(2)
    right = [scale * math.cos(3), scale * math.cos(0.15)]
    assert cos.flatten().tolist() == pytest.approx(right * 2)
    right = [scale * math.sin(3), scale * math.sin(0.15)]
    assert sin.flatten().tolist() == pytest.approx(right * 2)


def test_the_set_follows_the_longest_real_row() -> None:
    """O tokens are short, O + 1 are long, and padding doesn't count."""
    assert not is_long(PAPER, torch.ones(2, 4, dtype=torch.long))
    assert is_long(PAPER, torch.ones(2, 5, dtype=torch.long))
    padded = torch.ones(2, 6, dtype=torch.long)
    padded[:, :2] = 0
    assert not is_long(PAPER, padded)


def _bench(model: str) -> Bench:
    try:
        return Bench.build(Case(model, "decode-crossing", "eager"), TINY)
    except Unsupported as lack:
        pytest.skip(f"{model}: {lack}")


@pytest.mark.parametrize("model", ["phi3"])
@pytest.mark.parametrize("length", [1, 4, 7, 8, 9, 12, 20])
def test_it_agrees_with_the_release_below_and_above_o(model: str, length: int) -> None:
    """An uncached forward of the release, in float32, is within rounding of the reference."""
    bench = _bench(model)
    oracle = Reference(bench.shape, bench.model.state_dict(), "dense")
    tokens = bench.prompt(length)
    mask = torch.ones_like(tokens)
    assert (
        float(relative_error(bench.uncached(tokens, mask), oracle.logits(tokens, mask)).max())
        < 1e-5
    )


@pytest.mark.parametrize("model", sorted(MODELS))
def test_it_agrees_with_every_model_below_o(model: str) -> None:
    """Heads, groups, partial rotation, experts and norms are those of the architecture."""
    if (status := measure(Case(model, "rotary-probe")).status) != "ok":
        pytest.skip(f"the rotary tables of {model} are {status} here, which is another test")
    bench = _bench(model)
    oracle = Reference(bench.shape, bench.model.state_dict(), bench.spec.architecture or "")
    tokens, mask = bench.left_padded([6, 4])
    seen = bench.uncached(tokens, mask)
    assert float(relative_error(seen, oracle.logits(tokens, mask)).max()) < 1e-5


def test_a_long_prefix_is_the_same_in_pieces() -> None:
    """Chunks of queries and several lengths at once change nothing."""
    bench = _bench("phi3")
    oracle = Reference(bench.shape, bench.model.state_dict(), "dense")
    tokens = bench.prompt(600)
    mask = torch.ones_like(tokens)
    together = oracle.logits_at(tokens, mask, [550, 600], Variant(long=True))
    for length, logits in zip((550, 600), together, strict=True):
        alone = oracle.logits(tokens[:, :length], mask[:, :length], Variant(long=True))
        assert torch.allclose(logits, alone, atol=1e-12)


def test_every_hypothesis_is_another_result() -> None:
    """On this model no defect can hide behind another, or behind being right."""
    bench = _bench("phi3")
    oracle = Reference(bench.shape, bench.model.state_dict(), "dense")
    tokens = bench.prompt(9)
    mask = torch.ones_like(tokens)
    stale = torch.arange(9).expand(2, 9) >= 8
    variants = {
        "right": Variant(),
        "prefix lost": Variant(forget=8),
        "stale keys": Variant(long=stale),
        "no causal mask": Variant(causal=False),
        "short factors": Variant(long=False),
        "no scaling": Variant(scaling=1.0),
    }
    results = {name: oracle.logits(tokens, mask, variant) for name, variant in variants.items()}
    for name, one in results.items():
        for other, two in results.items():
            if name != other:
                assert float(relative_error(one, two).min()) > 0.05, (name, other)
