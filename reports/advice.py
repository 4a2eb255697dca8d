"""What to pin: version specifiers that cover measured releases, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from matrix.records import Source
from reports.verdicts import Verdict, version
from reports.words import scenario_key

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from reports.verdicts import Statement


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A stretch of releases that one can run, and what is still wrong in it.

    Attributes:
        specifier: Version specifier, ``>=5.18.0,<=5.24.0,!=5.20.0``.
        first: First release that it allows.
        last: Last release that it allows: the newest that was measured.
        excluded: Releases in between that it rules out, known to be wrong or not decided.
        untested: Known releases in between of which nothing is known, and which it allows.
        still_wrong: Scenarios that are wrong all the same.
    """

    specifier: str
    first: str
    last: str
    excluded: tuple[str, ...]
    untested: tuple[str, ...]
    still_wrong: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioAdvice:
    """The newest stretch of releases that get one scenario right; None if there is none."""

    scenario: str
    choice: Choice | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """What to pin for one model.

    Attributes:
        model: The model.
        choice: The newest stretch with the fewest scenarios wrong; None if nothing is decided.
        scenarios: The same for each way of use by itself.
    """

    model: str
    choice: Choice | None
    scenarios: tuple[ScenarioAdvice, ...]


def advise(model: str, statements: Iterable[Statement], releases: Sequence[str]) -> Advice:
    """What to pin for `model`, from its statements about published releases.

    Args:
        model: The model.
        statements: Statements about it; refs are ignored, since nobody can pin them.
        releases: Every known release, in version order.
    """
    said = {s.transformers: s for s in statements if s.source is Source.INDEX and s.model == model}
    scenarios = sorted(
        {name for s in said.values() for name in (*s.affected, *s.right, *s.undecided)},
        key=scenario_key,
    )
    return Advice(
        model=model,
        choice=_best(said, releases),
        scenarios=tuple(
            ScenarioAdvice(
                scenario=scenario,
                choice=_stretch(
                    releases,
                    _state_of_scenario(said, scenario),
                    still_wrong=(),
                ),
            )
            for scenario in scenarios
        ),
    )


def _best(said: dict[str, Statement], releases: Sequence[str]) -> Choice | None:
    """The newest stretch among those with the fewest scenarios wrong."""
    decided = [
        s
        for s in said.values()
        if s.statement.right or (s.statement is Verdict.AFFECTED and not s.undecided and s.right)
    ]
    if not decided:
        return None
    target = min(decided, key=lambda s: (len(s.affected), _newest_first(s)))
    allowed = set(target.affected)

    def state(release: str) -> bool | None:
        statement = said.get(release)
        if statement is None:
            return None
        if not set(statement.affected) <= allowed:
            return False
        return statement in decided

    return _stretch(releases, state, still_wrong=target.affected)


def _newest_first(statement: Statement) -> tuple[int, ...]:
    return tuple(-number for number in version(statement.transformers).release)


def _state_of_scenario(said: dict[str, Statement], scenario: str) -> Callable[[str], bool | None]:
    def state(release: str) -> bool | None:
        statement = said.get(release)
        if statement is None:
            return None
        if scenario in statement.affected or scenario in statement.undecided:
            return False
        return True if scenario in statement.right else None

    return state


def _stretch(
    releases: Sequence[str],
    state: Callable[[str], bool | None],
    *,
    still_wrong: tuple[str, ...],
) -> Choice | None:
    """The newest stretch of good releases, bounded by bad ones or by what was measured.

    A stretch ends at two bad releases in a row; a single bad one within it is excluded by
    name, since that is how a yanked or broken patch release looks.
    """
    known = [(name, state(name)) for name in releases]
    good = [index for index, (_, value) in enumerate(known) if value]
    if not good:
        return None
    end = start = good[-1]
    excluded: list[str] = []
    passed: list[str] = []
    for index in range(end - 1, -1, -1):
        name, value = known[index]
        if value:
            start = index
            excluded.extend(passed)
            passed = []
        elif value is False:
            passed.append(name)
            if len(passed) > 1:
                break
    untested = [name for name, value in known[start:end] if value is None]
    first, last = known[start][0], known[end][0]
    return Choice(
        specifier=specifier(first, last, excluded),
        first=first,
        last=last,
        excluded=tuple(reversed(excluded)),
        untested=tuple(untested),
        still_wrong=still_wrong,
    )


def specifier(first: str, last: str, excluded: Iterable[str]) -> str:
    """A version specifier from `first` to `last`, both included, without the excluded ones."""
    if first == last:
        return f"=={first}"
    bounds = [f">={first}", f"<={last}"]
    return ",".join([*bounds, *(f"!={name}" for name in sorted(excluded, key=version))])
