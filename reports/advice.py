"""What to pin: version specifiers that cover measured releases, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import TYPE_CHECKING

from matrix.records import Source
from reports.spans import skips_a_minor
from reports.verdicts import Verdict, version
from reports.words import scenario_key

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from reports.statements import Statement


class _State(Enum):
    """What is known of one release, as far as a choice is concerned."""

    RIGHT = auto()
    WRONG = auto()
    IN_DOUBT = auto()
    UNTESTED = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A stretch of releases that one can run, and what is still wrong in it.

    Attributes:
        specifier: Version specifier, ``>=5.18.0,<=5.24.0,!=5.20.0``.
        first: First release that it allows.
        last: Last release that it allows: the newest that was measured.
        excluded: Releases in between that it rules out, since less is known of them.
        untested: Known releases in between of which nothing is known, and which it allows.
        still_wrong: Core scenarios that are wrong all the same.
        also_wrong: Scenarios beyond the core that are wrong in the last of them.
    """

    specifier: str
    first: str
    last: str
    excluded: tuple[str, ...]
    untested: tuple[str, ...]
    still_wrong: tuple[str, ...]
    also_wrong: tuple[str, ...] = ()


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
        choice: The newest stretch with the fewest core scenarios wrong; None if nothing is decided.
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
        {
            name
            for s in said.values()
            for name in (
                *(*s.affected, *s.right, *s.undecided),
                *(*s.also_affected, *s.also_right, *s.also_undecided),
            )
        },
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

    def state(release: str) -> _State:
        statement = said.get(release)
        if statement is None:
            return _State.UNTESTED
        if not set(statement.affected) <= allowed:
            return _State.WRONG
        return _State.RIGHT if statement in decided else _State.IN_DOUBT

    choice = _stretch(releases, state, still_wrong=target.affected)
    return choice and replace(choice, also_wrong=said[choice.last].also_affected)


def _newest_first(statement: Statement) -> tuple[int, ...]:
    return tuple(-number for number in version(statement.transformers).release)


def _state_of_scenario(said: dict[str, Statement], scenario: str) -> Callable[[str], _State]:
    def state(release: str) -> _State:
        statement = said.get(release)
        if statement is None:
            return _State.UNTESTED
        if scenario in (*statement.affected, *statement.also_affected):
            return _State.WRONG
        if scenario in (*statement.undecided, *statement.also_undecided):
            return _State.IN_DOUBT
        right = scenario in (*statement.right, *statement.also_right)
        return _State.RIGHT if right else _State.UNTESTED

    return state


def _stretch(
    releases: Sequence[str],
    state: Callable[[str], _State],
    *,
    still_wrong: tuple[str, ...],
) -> Choice | None:
    """The newest stretch of right releases, up to what was measured.

    It goes back to the last wrong release, or to a minor release that nobody tested.
    """
    known = [(name, state(name)) for name in releases]
    right = [index for index, (_, value) in enumerate(known) if value is _State.RIGHT]
    if not right:
        return None
    start = end = right[-1]
    nearest = known[end][0]
    for index in range(end - 1, -1, -1):
        name, value = known[index]
        if value is _State.UNTESTED:
            continue
        if value is _State.WRONG or skips_a_minor(name, nearest):
            break
        nearest = name
        if value is _State.RIGHT:
            start = index
    inside = known[start:end]
    excluded = tuple(name for name, value in inside if value is _State.IN_DOUBT)
    return Choice(
        specifier=specifier(known[start][0], known[end][0], excluded),
        first=known[start][0],
        last=known[end][0],
        excluded=excluded,
        untested=tuple(name for name, value in inside if value is _State.UNTESTED),
        still_wrong=still_wrong,
    )


def specifier(first: str, last: str, excluded: Iterable[str]) -> str:
    """A version specifier from `first` to `last`, both included, without the excluded ones."""
    if first == last:
        return f"=={first}"
    bounds = [f">={first}", f"<={last}"]
    return ",".join([*bounds, *(f"!={name}" for name in sorted(excluded, key=version))])
