"""Equal histories, told once.

A *story* is a sequence of intervals that one or more axes share to the letter.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Final

from matrix.records import Status
from reports.verdicts import axis_key
from reports.words import join, scenario_key, unique

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from matrix.history import Axis
    from reports.verdicts import Interval

ANY_CASE: Final = "any"
"""Backend, device, data type and runtime of a condensed record; see `reports.condense`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """Axes of one model whose intervals are equal.

    Attributes:
        model: The model.
        axes: The axes, in the order of the catalog.
        intervals: The intervals of the first of them, which stand for all.
    """

    model: str
    axes: tuple[Axis, ...]
    intervals: tuple[Interval, ...]

    @property
    def scenarios(self) -> tuple[str, ...]:
        """The scenarios among its axes."""
        return unique(axis.scenario for axis in self.axes)

    @property
    def affected(self) -> bool:
        """Whether any release was affected."""
        return any(interval.status is Status.AFFECTED for interval in self.intervals)

    def ways(self, common: Common) -> tuple[str, ...]:
        """Its axes in words, without what they have in common with all the others."""
        return ways(self.axes, common)


@dataclass(frozen=True, slots=True, kw_only=True)
class Common:
    """What all the axes of a model share, said once instead of every time.

    Attributes:
        place: Device and data type, or None where they differ.
        runtime: Python and torch, or None where they differ.
    """

    place: str | None
    runtime: str | None

    @property
    def words(self) -> str:
        """``cpu float32 · Python 3.11, torch 2.13.0``; empty if nothing is shared."""
        return " · ".join(part for part in (self.place, self.runtime) if part)


def common(axes: Iterable[Axis]) -> Common:
    """What `axes` share."""
    kept = list(axes)
    places = {_place(axis) for axis in kept}
    runtimes = {_runtime(axis) for axis in kept}
    return Common(
        place=places.pop() if len(places) == 1 else None,
        runtime=runtimes.pop() if len(runtimes) == 1 else None,
    )


def stories(intervals: Iterable[Interval]) -> tuple[Story, ...]:
    """Group axes with equal intervals; stories with an affected release come first."""
    by_axis: defaultdict[Axis, list[Interval]] = defaultdict(list)
    for interval in intervals:
        by_axis[interval.axis].append(interval)
    groups: defaultdict[tuple[object, ...], list[Axis]] = defaultdict(list)
    for axis, members in by_axis.items():
        groups[axis.model, tuple(member.outcome for member in members)].append(axis)
    found = [
        Story(
            model=axes[0].model,
            axes=tuple(sorted(axes, key=axis_key)),
            intervals=tuple(by_axis[min(axes, key=axis_key)]),
        )
        for axes in groups.values()
    ]
    return tuple(sorted(found, key=_story_key))


def _story_key(story: Story) -> tuple[object, ...]:
    return (axis_key(story.axes[0])[0], not story.affected, axis_key(story.axes[0]))


def ways(axes: Sequence[Axis], shared: Common) -> tuple[str, ...]:
    """Axes in words, as few as possible: ``decode-crossing, left-padded — eager and sdpa``."""
    by_scenario: defaultdict[str, list[Axis]] = defaultdict(list)
    for axis in axes:
        by_scenario[axis.scenario].append(axis)
    together: defaultdict[str, list[str]] = defaultdict(list)
    for scenario in sorted(by_scenario, key=scenario_key):
        together[where(by_scenario[scenario], shared)].append(scenario)
    return tuple(
        f"{', '.join(names)} — {place}" if place else ", ".join(names)
        for place, names in together.items()
    )


def where(axes: Sequence[Axis], shared: Common) -> str:
    """Backends, and what is not shared of devices, data types and runtimes, in words.

    Where they make a full product it is told as one, otherwise one by one.
    """
    if any(axis.attention == ANY_CASE for axis in axes):
        return ""
    parts = [unique(axis.attention for axis in axes)]
    if shared.place is None:
        parts.append(unique(_place(axis) for axis in axes))
    if shared.runtime is None:
        parts.append(unique(_runtime(axis) for axis in axes))
    told = unique(
        " · ".join(
            (
                axis.attention,
                *(() if shared.place else (_place(axis),)),
                *(() if shared.runtime else (_runtime(axis),)),
            )
        )
        for axis in axes
    )
    if len(told) == prod(len(part) for part in parts):
        return " · ".join(join(part) for part in parts)
    return "; ".join(told)


def _place(axis: Axis) -> str:
    return f"{axis.device} {axis.dtype}"


def _runtime(axis: Axis) -> str:
    return f"Python {axis.python}, torch {axis.torch}"
