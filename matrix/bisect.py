"""Bisection: where a case changed, in a line of releases or commits.

Pure, and the same for both: something is asked of one point at a time. Points that cannot be
tested are stepped around, and if the change hides behind them, that is what is said.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from matrix.records import Status

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from matrix.records import Record


class Side(Enum):
    """Which end of the line a point is like."""

    OLD = "old"
    NEW = "new"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Where the change is.

    Attributes:
        last_old: The last point that is like the old end.
        first_new: The first point that is like the new end.
        untested: Points between the two that could not be tested; empty where it is exact.
        steps: How many points were tested, the ends included.
    """

    last_old: str
    first_new: str
    untested: tuple[str, ...]
    steps: int


class NoChangeError(Exception):
    """The two ends do not differ, or one could not be tested; says which."""


def sides(old: Record, new: Record) -> Callable[[Record], Side]:
    """How to tell which end a record is like.

    By status where the ends differ in it; else by defect, and then a third defect is like
    neither.

    Raises:
        NoChangeError: An end is not conclusive, or both are alike.
    """
    for record, end in ((old, "first"), (new, "last")):
        if not record.status.conclusive:
            raise NoChangeError(
                f"the {end} point, {record.release}, could not be tested: "
                f"{record.status} ({record.reason}) {record.evidence.message or ''}".rstrip()
            )
    if old.status is not new.status:
        return lambda record: _side(record.status, old.status, new.status)
    if old.defect != new.defect:
        return lambda record: _side(record.defect, old.defect, new.defect)
    shown = old.status if old.status is Status.OK else f"{old.status} ({old.defect})"
    raise NoChangeError(f"both ends are {shown}: {old.release} and {new.release}")


def _side(value: object, old: object, new: object) -> Side:
    if value == old:
        return Side.OLD
    return Side.NEW if value == new else Side.UNKNOWN


def bisect(points: Sequence[str], test: Callable[[str], Record]) -> Found:
    """Find a change between the first and the last of `points`, in order of history.

    Both ends are tested first. With several changes it finds one of them.

    Args:
        points: At least two, the oldest first.
        test: Measures one point.

    Raises:
        NoChangeError: The ends do not differ, or one could not be tested.
    """
    old, new = test(points[0]), test(points[-1])
    side_of = sides(old, new)
    low, high, steps = 0, len(points) - 1, 2
    unknown: set[int] = set()
    while untested := [i for i in range(low + 1, high) if i not in unknown]:
        middle = min(untested, key=lambda index: abs(2 * index - low - high))
        steps += 1
        record = test(points[middle])
        side = side_of(record) if record.status.conclusive else Side.UNKNOWN
        if side is Side.OLD:
            low = middle
        elif side is Side.NEW:
            high = middle
        else:
            unknown.add(middle)
    return Found(
        last_old=points[low],
        first_new=points[high],
        untested=tuple(points[low + 1 : high]),
        steps=steps,
    )
