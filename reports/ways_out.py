"""What helps without another release: where each workaround was tried, and what came of it."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from matrix.records import Source, Status
from reports.spans import runs
from reports.words import scenario_key, workaround_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from matrix.records import Record

_Runs = tuple[tuple[str, ...], ...]

_HELPS_NOT = frozenset({Status.AFFECTED, Status.ERROR})


@dataclass(frozen=True, slots=True, kw_only=True)
class WayOut:
    """One workaround in ways of use where it does the same in every release.

    Attributes:
        workaround: Its name.
        scenarios: The ways of use.
        right: Runs of releases in which every case that goes wrong by itself is right with it.
        wrong: Runs of releases in which one is not.
    """

    workaround: str
    scenarios: tuple[str, ...]
    right: _Runs
    wrong: _Runs


def ways_out(records: Iterable[Record], releases: Sequence[str]) -> tuple[WayOut, ...]:
    """Every workaround that was tried on one model.

    A release in which a workaround gave no answer is in neither list, and a run never reaches
    over a release where the way of use is right by itself, or where the workaround does otherwise.

    Args:
        records: The records of one model.
        releases: Every known release, in version order.
    """
    decided: defaultdict[str, set[str]] = defaultdict(set)
    tried: defaultdict[tuple[str, str], defaultdict[str, set[Status]]]
    tried = defaultdict(lambda: defaultdict(set))
    for record in records:
        if record.source is not Source.INDEX or not record.status.conclusive:
            continue
        decided[record.scenario].add(record.transformers)
        for name, status in (record.evidence.workarounds or {}).items():
            tried[name, record.scenario][record.transformers].add(status)
    alike: defaultdict[tuple[str, _Runs, _Runs], list[str]] = defaultdict(list)
    for name, scenario in sorted(
        tried, key=lambda item: (workaround_key(item[0]), scenario_key(item[1]))
    ):
        places = tried[name, scenario]
        tested = [release for release in releases if release in decided[scenario]]
        right = [release for release in places if places[release] == {Status.OK}]
        wrong = [release for release in places if places[release] & _HELPS_NOT]
        alike[name, runs(tested, right), runs(tested, wrong)].append(scenario)
    return tuple(
        WayOut(workaround=name, scenarios=tuple(scenarios), right=right, wrong=wrong)
        for (name, right, wrong), scenarios in alike.items()
        if right or wrong
    )


def helping(records: Iterable[Record]) -> dict[str, tuple[str, ...]]:
    """For each release in which a workaround was tried, those that are right in every case of it.

    Args:
        records: The records to judge by, such as those of one model's core scenarios.

    Returns:
        Names of workarounds by release; no release in which none was tried.
    """
    cases: Counter[str] = Counter()
    right: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for record in records:
        if record.status is Status.AFFECTED:
            cases[record.release] += 1
            for name, status in (record.evidence.workarounds or {}).items():
                right[record.release][name] += status is Status.OK
    return {
        release: tuple(
            name
            for name in sorted(by_name, key=workaround_key)
            # What was not tried in every case that goes wrong is not known to help.
            if by_name[name] == cases[release]
        )
        for release, by_name in right.items()
    }
