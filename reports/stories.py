"""Equal histories, told once; and the history of a whole model, in a few spans.

A *story* is a sequence of intervals that one or more axes share to the letter. A *span* is
one level up: adjacent releases that are equally affected, whatever the way of use.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from matrix.records import Source, Status
from reports.verdicts import Verdict, axis_key
from reports.words import join, scenario_key, unique

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from matrix.history import Axis
    from matrix.records import Defect
    from reports.verdicts import Interval, Statement

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

    @property
    def ways(self) -> tuple[str, ...]:
        """Its axes in words: each set of scenarios that share backends, devices and runtimes."""
        return ways(self.axes)


@dataclass(frozen=True, slots=True, kw_only=True)
class DefectPart:
    """Where in a span one defect was seen, and in which ways of use."""

    defect: Defect
    first: str
    last: str
    scenarios: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Adjacent decided releases that are all affected, or all right, for one model.

    Attributes:
        affected: Whether they are affected; otherwise they are right.
        releases: The releases, in version order; never empty.
        parts: The defects in it, the longest standing first; none where it is right.
        unknown: Known releases inside the span that are not decided.
        unknown_before: How many such releases lie between the span and the one before it.
    """

    affected: bool
    releases: tuple[str, ...]
    parts: tuple[DefectPart, ...]
    unknown: tuple[str, ...]
    unknown_before: int

    @property
    def first(self) -> str:
        """The first release."""
        return self.releases[0]

    @property
    def last(self) -> str:
        """The last release."""
        return self.releases[-1]


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


def ways(axes: Sequence[Axis]) -> tuple[str, ...]:
    """Axes in words, as few as possible: ``decode-crossing, left-padded · eager, sdpa · cpu …``."""
    by_scenario: defaultdict[str, list[Axis]] = defaultdict(list)
    for axis in axes:
        by_scenario[axis.scenario].append(axis)
    shared: defaultdict[str, list[str]] = defaultdict(list)
    for scenario in sorted(by_scenario, key=scenario_key):
        shared[where(by_scenario[scenario])].append(scenario)
    return tuple(f"{', '.join(names)} — {place}" for place, names in shared.items())


def where(axes: Sequence[Axis]) -> str:
    """Backends, devices, data types and runtimes of axes, in words.

    Where they make a full product it is told as one, otherwise one by one.
    """
    if any(axis.attention == ANY_CASE for axis in axes):
        return "the worst of its cases"
    parts = [
        unique(axis.attention for axis in axes),
        unique(f"{axis.device} {axis.dtype}" for axis in axes),
        unique(f"Python {axis.python}, torch {axis.torch}" for axis in axes),
    ]
    distinct = {(a.attention, a.device, a.dtype, a.python, a.torch) for a in axes}
    product = len(parts[0]) * len(parts[1]) * len(parts[2])
    if len(distinct) == product:
        return " · ".join(join(part) for part in parts)
    return "; ".join(
        f"{a.attention} · {a.device} {a.dtype} · Python {a.python}, torch {a.torch}" for a in axes
    )


def spans(statements: Iterable[Statement], releases: Sequence[str]) -> tuple[Span, ...]:
    """The history of one model, from its statements about published releases.

    Undecided releases are stepped around, as `matrix.history.runs` does, and told as unknown.

    Args:
        statements: Statements about one model.
        releases: Every known release, in version order.
    """
    said = {s.transformers: s for s in statements if s.source is Source.INDEX}
    groups: list[tuple[list[Statement], list[str], int]] = []
    pending: list[str] = []
    for name in releases:
        statement = said.get(name)
        if statement is None or statement.statement is Verdict.UNDER_INVESTIGATION:
            pending.append(name)
            continue
        if groups and groups[-1][0][-1].statement.right == statement.statement.right:
            groups[-1][0].append(statement)
            groups[-1][1].extend(pending)
        else:
            groups.append(([statement], [], len(pending) if groups else 0))
        pending = []
    return tuple(
        Span(
            affected=not members[0].statement.right,
            releases=tuple(member.transformers for member in members),
            parts=_parts(members),
            unknown=tuple(unknown),
            unknown_before=unknown_before,
        )
        for members, unknown, unknown_before in groups
    )


def _parts(members: Sequence[Statement]) -> tuple[DefectPart, ...]:
    """Each defect of a span with the releases and ways of use in which it was seen."""
    seen: defaultdict[Defect, list[Statement]] = defaultdict(list)
    for member in members:
        for defect in member.defects:
            seen[defect].append(member)
    return tuple(
        DefectPart(
            defect=defect,
            first=where_seen[0].transformers,
            last=where_seen[-1].transformers,
            scenarios=tuple(
                sorted({name for s in where_seen for name in s.defects[defect]}, key=scenario_key)
            ),
        )
        for defect, where_seen in sorted(seen.items(), key=lambda item: (-len(item[1]), item[0]))
    )
