"""Random histories for property tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import strategies as st

from tests.reports.factory import record

if TYPE_CHECKING:
    from matrix.records import Record

RELEASES = tuple(f"1.{minor}.{patch}" for minor in range(4) for patch in range(3))
OUTCOMES = (
    "ok",
    "prefix_lost",
    "stale_keys",
    "inconclusive",
    "timeout",
    "no_backend",
    "no_device",
)
SCENARIOS = ("below-boundary", "decode-crossing", "left-padded")


@st.composite
def histories(draw: st.DrawFn) -> list[Record]:
    """Records of a few cases over a few releases, with gaps, in random order."""
    found: list[Record] = []
    for scenario in SCENARIOS:
        for attention in ("eager", "sdpa"):
            chosen = draw(
                st.dictionaries(st.sampled_from(RELEASES), st.sampled_from(OUTCOMES), max_size=9)
            )
            found.extend(
                record(name, outcome, scenario=scenario, attention=attention)
                for name, outcome in chosen.items()
            )
    return draw(st.permutations(found))
