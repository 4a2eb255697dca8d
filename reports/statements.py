"""What is said of a release: affected, fixed, not affected, or not decided."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from matrix.records import Defect, Source, Status
from reports.verdicts import Verdict, release_key
from reports.words import CONTROL_SCENARIO, CORE_SCENARIOS, model_key, scenario_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from packaging.version import Version

    from matrix.records import Record


class Statement(msgspec.Struct, frozen=True, kw_only=True):
    """What is said about one model in one release.

    Attributes:
        transformers: Version of the release.
        source: Where it was installed from.
        ref: What was asked for, where that moves.
        commit: The commit behind `ref`.
        released_at: When it was uploaded to the index.
        model: Name of the model.
        statement: The verdict.
        defects: Defects seen in the core scenarios, in the order of their definition, and the
            scenarios of each.
        affected: Core scenarios that are affected.
        undecided: Core scenarios that keep the release from being called right.
        right: Core scenarios measured and right, the control left out.
        also_affected: Scenarios beyond the core that are affected.
        also_undecided: Scenarios beyond the core that were tried in vain.
        also_right: Scenarios beyond the core that are right.
        conclusive: How many records decide it.
        inconclusive: How many records tried to, in vain. `unsupported` and `not_run` are
            in neither number.
    """

    transformers: str
    source: Source
    ref: str | None
    commit: str | None
    released_at: str | None
    model: str
    statement: Verdict
    defects: dict[Defect, tuple[str, ...]]
    affected: tuple[str, ...]
    undecided: tuple[str, ...]
    right: tuple[str, ...]
    also_affected: tuple[str, ...]
    also_undecided: tuple[str, ...]
    also_right: tuple[str, ...]
    conclusive: int
    inconclusive: int

    @property
    def release(self) -> str:
        """Name of the release: its version, or the ref that was asked for."""
        return self.transformers if self.ref is None else self.ref


def statements(records: Iterable[Record]) -> tuple[Statement, ...]:
    """A statement for every release and model that has a record which could decide it.

    The core scenarios decide; the others, which releases promise less about, are told beside.
    Records without any core scenario, as somebody else's checks make them, are all core.

    A release is `affected` if any core record of it is. It is called right only if every way of
    use that an earlier release got wrong was measured on it and is right, and nothing that was
    tried on it failed to give an answer; otherwise it is `under_investigation`. The control
    scenario alone decides nothing. A release that does not have the model gets no statement.

    Published releases are taken in version order; a moving ref comes after all of them.
    """
    by_model: defaultdict[str, defaultdict[tuple[int, Version, str], list[Record]]]
    by_model = defaultdict(lambda: defaultdict(list))
    for record in records:
        by_model[record.model][release_key(record)].append(record)
    found: list[Statement] = []
    for model in sorted(by_model, key=model_key):
        core = core_scenarios(r.scenario for group in by_model[model].values() for r in group)
        affected_before: set[str] = set()
        for key, group in sorted(by_model[model].items()):
            statement = _statement(model, group, core, affected_before)
            if statement is None:
                continue
            found.append(statement)
            if key[0] == 0:
                affected_before.update(statement.affected)
    return tuple(sorted(found, key=lambda s: (model_key(s.model), release_key(s))))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tally:
    """Scenarios of one release by what their records say, in the order of the catalog."""

    affected: tuple[str, ...]
    undecided: tuple[str, ...]
    right: tuple[str, ...]


def _tally(records: Iterable[Record]) -> _Tally:
    by_scenario: defaultdict[str, list[Record]] = defaultdict(list)
    for record in records:
        by_scenario[record.scenario].append(record)
    affected: list[str] = []
    undecided: list[str] = []
    right: list[str] = []
    for scenario in sorted(by_scenario, key=scenario_key):
        group = by_scenario[scenario]
        if any(record.status is Status.AFFECTED for record in group):
            affected.append(scenario)
        elif _has_open_case(group):
            undecided.append(scenario)
        elif scenario != CONTROL_SCENARIO and any(r.status is Status.OK for r in group):
            right.append(scenario)
    return _Tally(affected=tuple(affected), undecided=tuple(undecided), right=tuple(right))


def _statement(
    model: str, records: Sequence[Record], core: frozenset[str], affected_before: set[str]
) -> Statement | None:
    if all(record.status is Status.UNSUPPORTED for record in records):
        return None
    mine = _tally(record for record in records if record.scenario in core)
    others = _tally(record for record in records if record.scenario not in core)
    missing = affected_before.difference(mine.affected, mine.right, mine.undecided)
    undecided = (*mine.undecided, *sorted(missing, key=scenario_key))
    if mine.affected:
        verdict = Verdict.AFFECTED
    elif undecided or not mine.right:
        verdict = Verdict.UNDER_INVESTIGATION
    else:
        verdict = Verdict.FIXED if affected_before else Verdict.NOT_AFFECTED
    seen = {(record.defect, record.scenario) for record in records}
    sample = records[-1]
    return Statement(
        transformers=sample.transformers,
        source=sample.source,
        ref=sample.ref,
        commit=sample.commit,
        released_at=sample.released_at,
        model=model,
        statement=verdict,
        defects={
            defect: names
            for defect in Defect
            if (names := tuple(name for name in mine.affected if (defect, name) in seen))
        },
        affected=mine.affected,
        undecided=undecided,
        right=mine.right,
        also_affected=others.affected,
        also_undecided=others.undecided,
        also_right=others.right,
        conclusive=sum(record.status.conclusive for record in records),
        inconclusive=sum(
            record.status in (Status.INCONCLUSIVE, Status.ERROR) for record in records
        ),
    )


def core_scenarios(scenarios: Iterable[str]) -> frozenset[str]:
    """Those of `scenarios` that decide a statement: the core ones, or all if none is."""
    found = frozenset(scenarios)
    return found & CORE_SCENARIOS or found


def _has_open_case(records: Iterable[Record]) -> bool:
    """Whether a case was tried and no runtime gave an answer for it.

    A release that one runtime is too old for is not in doubt when another runtime decided.
    """
    decided: set[str] = set()
    tried: set[str] = set()
    for record in records:
        if record.status.conclusive:
            decided.add(record.case)
        elif record.status in (Status.INCONCLUSIVE, Status.ERROR):
            tried.add(record.case)
    return bool(tried - decided)
