"""Bisection: ends first, one question at a time, around what cannot be tested."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matrix.bisect import NoChangeError, bisect
from tests.matrix.factory import record

if TYPE_CHECKING:
    from matrix.records import Record


def search(*outcomes: str) -> tuple[str, str, tuple[str, ...], list[str]]:
    """Bisect points 0, 1, … with these outcomes; also the points that were asked for."""
    asked: list[str] = []

    def test(point: str) -> Record:
        asked.append(point)
        return record(f"{point}.0", outcomes[int(point)])

    found = bisect([str(index) for index in range(len(outcomes))], test)
    assert found.steps == len(asked)
    return found.last_old, found.first_new, found.untested, asked


@given(st.integers(1, 200), st.integers(1, 200))
def test_the_change_is_found_in_few_steps(before: int, after: int) -> None:
    """Both ends, and then the logarithm of the length."""
    last, first, untested, asked = search(*["ok"] * before, *["lost"] * after)
    assert (last, first, untested) == (str(before - 1), str(before), ())
    assert asked[:2] == ["0", str(before + after - 1)]
    assert len(asked) <= 2 + (before + after).bit_length()


def test_a_fix_is_found_as_well() -> None:
    """Where the bad end is the older one."""
    assert search("lost", "lost", "ok", "ok", "ok")[:2] == ("1", "2")


def test_a_change_of_defect_is_a_change() -> None:
    """Both ends affected, by something else; a third defect is like neither."""
    assert search("mask", "mask", "lost", "lost")[:2] == ("1", "2")


@given(
    st.lists(st.sampled_from(["ok", "error", "unclear"]), max_size=20),
    st.lists(st.sampled_from(["lost", "error", "unsupported"]), max_size=20),
)
def test_what_cannot_be_tested_is_stepped_around(old: list[str], new: list[str]) -> None:
    """And named, where the change hides behind it."""
    outcomes = ["ok", *old, *new, "lost"]
    last, first, untested, asked = search(*outcomes)
    assert (outcomes[int(last)], outcomes[int(first)]) == ("ok", "lost")
    between = range(int(last) + 1, int(first))
    assert untested == tuple(str(index) for index in between)
    assert all(outcomes[index] not in ("ok", "lost") for index in between)
    assert len(asked) == len(set(asked))


@pytest.mark.parametrize(
    ("outcomes", "words"),
    [
        (["ok", "lost", "ok"], "both ends are ok"),
        (["lost", "ok", "lost"], "both ends are affected"),
        (["error", "lost"], "the first point"),
        (["ok", "unclear"], "the last point"),
    ],
)
def test_both_ends_are_verified_first(outcomes: list[str], words: str) -> None:
    """Nothing else is measured then."""
    with pytest.raises(NoChangeError, match=words):
        search(*outcomes)
