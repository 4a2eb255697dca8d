"""The history of a whole model: which releases are affected, and where each defect was seen."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from matrix.records import Source, Status
from reports.verdicts import Verdict, version
from reports.words import join, scenario_key, stretch

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from matrix.records import Defect, Record
    from reports.statements import Statement


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Adjacent decided releases that are all affected, or all right, for one model.

    Attributes:
        affected: Whether they are affected; otherwise they are right.
        releases: The releases, in version order; never empty.
        unknown: Known releases inside the span that are not decided.
        unknown_before: How many such releases lie between the span and the one before it.
    """

    affected: bool
    releases: tuple[str, ...]
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """Adjacent releases in which one defect was seen in the same ways of use.

    Attributes:
        defect: The defect.
        releases: The releases, in version order; never empty.
        ways: The ways of use, ``left-padded`` or, where not all did, ``left-padded on eager``.
    """

    defect: Defect
    releases: tuple[str, ...]
    ways: tuple[str, ...]

    @property
    def first(self) -> str:
        """The first release."""
        return self.releases[0]

    @property
    def last(self) -> str:
        """The last release."""
        return self.releases[-1]


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
            unknown=tuple(unknown),
            unknown_before=unknown_before,
        )
        for members, unknown, unknown_before in groups
    )


def sightings(records: Iterable[Record], releases: Sequence[str]) -> tuple[Sighting, ...]:
    """Where each defect of one model was seen, the newest first, then the longest.

    A release that decides nothing about a scenario neither ends nor extends a sighting.

    Args:
        records: The records of one model.
        releases: Every known release, in version order.
    """
    decided: defaultdict[tuple[str, str], set[tuple[str, str]]] = defaultdict(set)
    seen: defaultdict[tuple[Defect, str], defaultdict[str, set[tuple[str, str]]]]
    seen = defaultdict(lambda: defaultdict(set))
    for r in records:
        if r.source is not Source.INDEX or not r.status.conclusive:
            continue
        decided[r.scenario, r.transformers].add((r.attention, r.device))
        if r.status is Status.AFFECTED and r.defect is not None:
            seen[r.defect, r.scenario][r.transformers].add((r.attention, r.device))
    ways: defaultdict[tuple[Defect, tuple[str, ...]], list[str]] = defaultdict(list)
    for defect, scenario in sorted(seen, key=lambda item: scenario_key(item[1])):
        places = seen[defect, scenario]
        tested = [name for name in releases if decided.get((scenario, name))]
        for run in runs(tested, places):
            hit = set().union(*(places[name] for name in run))
            tried = set().union(*(decided[scenario, name] for name in run))
            ways[defect, run].append(scenario + _where(hit, tried))
    position = {name: index for index, name in enumerate(releases)}
    return tuple(
        Sighting(defect=defect, releases=run, ways=tuple(names))
        for (defect, run), names in sorted(
            ways.items(), key=lambda item: (-position[item[0][1][-1]], -len(item[0][1]))
        )
    )


def ranges(releases: Sequence[str]) -> tuple[str, ...]:
    """Releases as ranges, ``4.48.0 to 5.19.0``, that bridge untested patches but no minor.

    Between 4.41.2 and 5.16.1 lies too much to say "to" if neither was tested in between.
    """
    found: list[list[str]] = []
    for name in releases:
        if found and not skips_a_minor(found[-1][-1], name):
            found[-1].append(name)
        else:
            found.append([name])
    return tuple(stretch(members[0], members[-1]) for members in found)


def skips_a_minor(older: str, newer: str) -> bool:
    """Whether a whole minor release lies between two versions, by their numbers."""
    a, b = version(older), version(newer)
    if a.major == b.major:
        return b.minor > a.minor + 1
    return b.major > a.major + 1 or b.minor > 0


def runs(tested: Sequence[str], hits: Iterable[str]) -> tuple[tuple[str, ...], ...]:
    """Cut `tested` into the stretches whose every member is in `hits`."""
    wanted = set(hits)
    found: list[list[str]] = [[]]
    for name in tested:
        if name in wanted:
            found[-1].append(name)
        elif found[-1]:
            found.append([])
    return tuple(tuple(run) for run in found if run)


def _where(hit: set[tuple[str, str]], tried: set[tuple[str, str]]) -> str:
    """`` on eager`` where other backends were tried and are right; the same for devices."""
    words = [
        join(sorted({place[index] for place in hit}))
        for index in (0, 1)
        if {place[index] for place in hit} != {place[index] for place in tried}
    ]
    return f" on {' and '.join(words)}" if words else ""
