"""The stories of the models and what to pin, in words."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Final

from matrix.records import Status
from reports.advice import Advice, Choice, advise
from reports.build_grid import grid_view
from reports.condense import condense
from reports.paths import model_page, slug
from reports.picture import picture, style
from reports.spans import ranges
from reports.statements import core_scenarios
from reports.stories import Common, Story, common, stories
from reports.verdicts import intervals
from reports.view import (
    AdviceView,
    HelpView,
    IntervalView,
    LegendView,
    ModelView,
    StoryView,
    UseView,
    WayOutView,
)
from reports.ways_out import helping, ways_out
from reports.words import (
    DEFECT_MEANINGS,
    DEFECTS,
    STATUSES,
    SYMBOLS,
    count,
    enumerate_some,
    join,
    model_title,
    scenario_title,
    stretch,
    workaround_title,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matrix.records import Defect
    from reports.answer import ModelAnswer
    from reports.findings import Findings
    from reports.verdicts import Interval
    from reports.ways_out import WayOut

MOST_STORIES: Final = 12
"""With more stories than that, a model is condensed on the first page."""
MOST_STORIES_IN_FULL: Final = 200
"""With more stories than that, its own page condenses it too; results.csv has every case."""
MOST_CELLS: Final = 1_000
"""How many cells of the grid the first page has room for."""
CONDENSED: Final = "Each way of use is told by the worst of its cases."
MOST_UNFOLDED: Final = 4
"""With more stories than that, the tables are folded: the picture comes first."""


def model_view(
    answer: ModelAnswer, findings: Findings, *, full: bool, every_model: bool = False
) -> ModelView:
    """What is said of one model.

    Args:
        answer: The answer for it.
        findings: What the records say.
        full: Whether to tell every case, as a page of its own has room for.
        every_model: Whether its grid tells the verdicts of the other models too.
    """
    every = tuple(record for record in findings.records if record.model == answer.model)
    core = core_scenarios(record.scenario for record in every)
    records = every
    mine = tuple(i for i in findings.intervals if i.model == answer.model)
    told = stories(mine)
    condensed = len(told) > (MOST_STORIES_IN_FULL if full else MOST_STORIES)
    if condensed:
        records = condense(records)
        told = stories(intervals(records, findings.releases))
    shared = common(interval.axis for interval in mine)
    defects = {interval.defect for interval in mine if interval.defect is not None}
    return ModelView(
        name=answer.model,
        anchor=slug(answer.model),
        href=model_page(answer.model),
        title=model_title(answer.model),
        headline=answer.headline,
        sentence=" ".join(answer.sentences),
        tone=answer.tone,
        advice=advice_view(
            advise(answer.model, findings.statements, findings.releases),
            ways_out(every, findings.releases),
        ),
        stories=tuple(_story_view(story, findings.releases, shared) for story in told),
        shared=CONDENSED if condensed else _shared(shared),
        picture=picture(told, findings.releases, shared),
        legend=_legend(defects),
        grid=grid_view(
            answer.model,
            records,
            findings,
            helps=helping(record for record in every if record.scenario in core),
            every_model=every_model,
            max_cells=None if full else MOST_CELLS,
        ),
        condensed=condensed,
        unfolded=full or len(told) <= MOST_UNFOLDED,
    )


def _shared(shared: Common) -> str:
    return f"All of it on {shared.words}." if shared.words else ""


def _legend(defects: set[Defect]) -> tuple[LegendView, ...]:
    return (
        *(
            LegendView(
                style=str(defect),
                word=f"{SYMBOLS[Status.AFFECTED]} {DEFECTS[defect]}",
                meaning=meaning,
            )
            for defect, meaning in DEFECT_MEANINGS.items()
            if defect in defects
        ),
        LegendView(
            style=str(Status.OK),
            word=f"{SYMBOLS[Status.OK]} ok",
            meaning="Every step agrees with the uncached forward, and the controls behaved.",
        ),
        LegendView(
            style="untested",
            word="no answer",
            meaning="Not tested, not supported, or tested without a conclusion.",
        ),
    )


def _story_view(story: Story, releases: Sequence[str], shared: Common) -> StoryView:
    position = {name: index for index, name in enumerate(releases)}
    return StoryView(
        ways=story.ways(shared),
        intervals=tuple(_interval_view(interval, position) for interval in story.intervals),
    )


def _interval_view(interval: Interval, position: dict[str, int]) -> IntervalView:
    between = position[interval.last] - position[interval.first] + 1 - len(interval.unknown)
    return IntervalView(
        style=style(interval.status, interval.defect),
        symbol=SYMBOLS[interval.status],
        word=(
            STATUSES[interval.status]
            if interval.defect is None
            else f"{STATUSES[interval.status]}: {DEFECTS[interval.defect]}"
        ),
        releases=stretch(interval.first, interval.last),
        number=between,
        after=interval.after or "none tested",
        before=interval.before or "none tested",
        untested=(
            "none"
            if interval.untested_between == 0
            else count(interval.untested_between, "release")
        ),
        inside=enumerate_some(interval.unknown, 4),
    )


def advice_view(advice: Advice, out: Sequence[WayOut] = ()) -> AdviceView:
    """What to pin, and what else helps, in sentences."""
    title = model_title(advice.model)
    choice = advice.choice
    if choice is None:
        lead = f"No release can be recommended for {title}: none has been decided."
        notes: tuple[str, ...] = ()
    elif choice.still_wrong:
        wrong = enumerate_some(choice.still_wrong, 6)
        lead = (
            f"No measured release of transformers is right for {title} in every core way of use."
            f" These get the most right; still wrong in them: {wrong}."
        )
        notes = _choice_notes(choice)
    else:
        lead = f"For {title}, these releases were measured and are right{_except(choice)}."
        notes = _choice_notes(choice)
    return AdviceView(
        model=title,
        look=_look(choice),
        lead=lead,
        requirement=_requirement(choice),
        notes=notes,
        uses=tuple(
            UseView(
                scenario=use.scenario,
                title=scenario_title(use.scenario),
                requirement=_requirement(use.choice),
                note=(
                    " ".join(_choice_notes(use.choice))
                    if use.choice
                    else "No measured release is right."
                ),
            )
            for use in advice.scenarios
        ),
        ways_out=tuple(
            WayOutView(code=name, what=workaround_title(name), help=tuple(map(_help_view, ways)))
            for name, ways in groupby(out, key=lambda way: way.workaround)
        ),
    )


def _help_view(way: WayOut) -> HelpView:
    return HelpView(ways=join(way.scenarios), right=_places(way.right), wrong=_places(way.wrong))


def _places(found: Sequence[Sequence[str]]) -> str:
    return join([place for run in found for place in ranges(run)]) or "none"


def _look(choice: Choice | None) -> str:
    if choice is None:
        return "none"
    if choice.still_wrong:
        return "some"
    return "most" if choice.also_wrong else "all"


def _except(choice: Choice) -> str:
    if not choice.also_wrong:
        return ""
    return f" in the core ways of use, but not in {enumerate_some(choice.also_wrong, 12)}"


def _requirement(choice: Choice | None) -> str:
    return "" if choice is None else f"transformers{choice.specifier}"


def _choice_notes(choice: Choice) -> tuple[str, ...]:
    notes = []
    if choice.excluded:
        notes.append(
            f"Left out, since less is known of them: {enumerate_some(choice.excluded, 6)}."
        )
    if choice.untested:
        notes.append(f"Between them, not measured: {enumerate_some(choice.untested, 6)}.")
    return tuple(notes)
