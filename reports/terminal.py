"""The answer in a terminal: the same view, in plain or coloured lines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.box import SIMPLE
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from reports.escape import clean
from reports.words import look

if TYPE_CHECKING:
    from rich.console import Console

    from reports.site import Answer
    from reports.view import ModelView, View

_STYLES: Final = {"good": "green", "bad": "red", "none": "dim"}


def print_answer(answer: Answer, console: Console) -> None:
    """Print the answer, the intervals as a table, what to pin, and where the page is."""
    view = answer.view
    tone = {"good": "green", "partly": "yellow", "bad": "bold red", "unknown": "yellow"}[view.tone]
    console.print(Text(clean(view.headline), style=tone))
    for sentence in view.answer:
        console.print(Text(clean(sentence)))
    console.print(Text(clean(view.measured), style="dim"))
    for model in view.models:
        console.print(_table(model))
    for line in _advice(view):
        console.print(line)
    for problem in view.problems:
        console.print(Text(clean(problem), style="yellow"))
    console.print(Text(f"Page: {answer.page}"), soft_wrap=True)


def _table(model: ModelView) -> Table:
    title = clean(f"{model.title}. {model.shared}".rstrip())
    table = Table(title=escape(title), title_justify="left", title_style="bold", box=SIMPLE)
    for name in ("case", "status", "releases"):
        table.add_column(name, overflow="fold")
    for story in model.stories:
        ways = "\n".join(story.ways)
        for row in story.intervals:
            table.add_row(
                Text(clean(ways)),
                Text(clean(f"{row.symbol} {row.word}"), style=_STYLES[look(row.style)]),
                Text(clean(row.releases)),
            )
            ways = ""
    return table


def _advice(view: View) -> list[Text]:
    lines: list[Text] = []
    for advice in (model.advice for model in view.models):
        lines.append(Text(clean(advice.lead)))
        if advice.requirement:
            lines.append(Text(f"    {clean(advice.requirement)}", style="bold"))
        lines.extend(Text(clean(note), style="dim") for note in advice.notes)
    return lines
