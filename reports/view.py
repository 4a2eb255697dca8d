"""The view model: everything that any output says, said once.

The page, the Markdown, the terminal and the badge print these fields and decide nothing.
Everything here is plain text; escaping is the business of whoever prints it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reports.answer import Tone
    from reports.changes import Change
    from reports.measured import Coverage
    from reports.picture import Picture

Fact = tuple[str, str]
"""A label and its value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Glance:
    """A number or a verdict worth seeing at once; `look` is its colour, empty for a number."""

    label: str
    value: str
    look: str


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictView:
    """A statement about a release, ready to print.

    Attributes:
        model: The model.
        style: The verdict's code; also the name of its style.
        symbol: The verdict as one character.
        word: The verdict in words.
        brief: By what, or why not decided, in a few words; may be empty.
        detail: The same with the ways of use.
    """

    model: str
    style: str
    symbol: str
    word: str
    brief: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class IntervalView:
    """One row of the table of intervals."""

    style: str
    symbol: str
    word: str
    releases: str
    number: int
    after: str
    before: str
    untested: str
    inside: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StoryView:
    """Ways of use with the same history."""

    ways: tuple[str, ...]
    intervals: tuple[IntervalView, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class UseView:
    """What to pin for one way of use."""

    scenario: str
    title: str
    requirement: str
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HelpView:
    """Ways of use, and the releases in which a workaround helps or doesn't; ``none`` if none."""

    ways: str
    right: str
    wrong: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WayOutView:
    """What can be done without another release, and where that was seen to help."""

    code: str
    what: str
    help: tuple[HelpView, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AdviceView:
    """What to pin for one model.

    Attributes:
        model: The model.
        look: ``all`` is right, ``most`` (the core), ``some`` or ``none``: the style of the box.
        lead: What to do, in a sentence.
        requirement: The line for requirements.txt; empty if there is none to give.
        notes: What to know about it.
        uses: The same for each way of use.
        ways_out: What helps without another release.
    """

    model: str
    look: str
    lead: str
    requirement: str
    notes: tuple[str, ...]
    uses: tuple[UseView, ...]
    ways_out: tuple[WayOutView, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LegendView:
    """A style and what it means."""

    style: str
    word: str
    meaning: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CellView:
    """A cell of the grid."""

    style: str
    symbol: str
    word: str
    look: str
    href: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnView:
    """A column of the grid; `words` is what a filter looks in."""

    scenarios: tuple[str, ...]
    places: str
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RowView:
    """A row of the grid: a release.

    Attributes:
        helps: Codes of the workarounds that are right wherever its core goes wrong, separated by
            blanks; None where none was tried.
    """

    name: str
    anchor: str
    href: str
    date: str
    commit: str
    verdicts: tuple[VerdictView, ...]
    cells: tuple[CellView, ...]
    helps: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GridView:
    """Releases by cases, newest first.

    Attributes:
        columns: The cases.
        rows: The releases.
        verdicts: The verdicts that occur, code and word.
        several: Whether the rows tell verdicts of several models.
        left_out: How many columns there was no room for.
    """

    columns: tuple[ColumnView, ...]
    rows: tuple[RowView, ...]
    verdicts: tuple[Fact, ...]
    several: bool
    left_out: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelView:
    """What is said of one model.

    Attributes:
        name: The model.
        anchor: Anchor of its section.
        href: Its own page, with every case.
        title: Its name for people.
        headline: The answer for it in a few words.
        sentence: The answer for it.
        tone: Whether the newest decided release is right.
        advice: What to pin.
        stories: Its histories.
        shared: What all of them have in common, in a sentence; empty if nothing.
        picture: The same as a picture; None without any.
        legend: The styles of the picture.
        grid: Releases by cases.
        condensed: Whether ways of use stand for all their cases here.
        unfolded: Whether the tables of the histories are unfolded.
    """

    name: str
    anchor: str
    href: str
    title: str
    headline: str
    sentence: str
    tone: Tone
    advice: AdviceView
    stories: tuple[StoryView, ...]
    shared: str
    picture: Picture | None
    legend: tuple[LegendView, ...]
    grid: GridView
    condensed: bool
    unfolded: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RunView:
    """A run that the site keeps: when it was made, where its report is, what it said."""

    when: str
    href: str
    summary: str


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """The whole report.

    Attributes:
        title: Title of the page: the answer in a few words.
        headline: The same as a heading.
        summary: The answer in one or two sentences, with what was measured, when, and how
            much of it is conclusive; the `summary` of results.json.
        answer: The sentences of the summary that say who is affected.
        measured: The part that says what it rests on.
        tone: Whether the newest decided release is right.
        badge: The message of the badge.
        date: The day of the report.
        generated_at: Its time.
        coverage: Counts.
        glances: The counts and dates worth seeing at once.
        models: What is said of each model, the one of the bug report first.
        changes: What is new since the run before, the gravest first; None if no run is known.
        more_changes: How many more there are.
        since: When that run was.
        runs: The runs that the site keeps.
        limits: What was not measured, and why.
        problems: What went wrong outside of any cell.
        provenance: Where the report comes from.
        repository: Address of the harness; empty if unknown.
        method: How it is measured, paragraph by paragraph.
        files: The machine-readable files and what each holds.
        example_anchor: The anchor of one release, to show what such an anchor looks like.
    """

    title: str
    headline: str
    summary: str
    answer: tuple[str, ...]
    measured: str
    tone: Tone
    badge: str
    date: str
    generated_at: str
    coverage: Coverage
    glances: tuple[Glance, ...]
    models: tuple[ModelView, ...]
    changes: tuple[Change, ...] | None
    more_changes: int
    since: str
    runs: tuple[RunView, ...]
    limits: tuple[str, ...]
    problems: tuple[str, ...]
    provenance: tuple[Fact, ...]
    repository: str
    method: tuple[str, ...]
    files: tuple[Fact, ...]
    example_anchor: str

    @property
    def first(self) -> ModelView | None:
        """The model that the first page tells in full; None if nothing was measured."""
        return self.models[0] if self.models else None

    @property
    def others(self) -> tuple[ModelView, ...]:
        """The models that have pages of their own."""
        return self.models[1:]
