"""What the user sees while a run goes on: a bar in a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from matrix.records import Status

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.progress import TaskID

    from matrix.records import Record

_COLOURS = {
    Status.OK: "green",
    Status.AFFECTED: "red",
    Status.INCONCLUSIVE: "yellow",
    Status.UNSUPPORTED: "dim",
    Status.NOT_RUN: "dim",
    Status.ERROR: "yellow",
}


@dataclass(slots=True)
class Reporter:
    """Tells how a run goes on.

    Attributes:
        console: Where to; a terminal gets a bar, anything else a line for each cell.
        phases: Seconds that each phase took, in order.
    """

    console: Console = field(default_factory=lambda: Console(stderr=True, highlight=False))
    phases: dict[str, float] = field(default_factory=dict)
    _bar: Progress | None = None
    _task: TaskID | None = None
    _done: int = 0
    _total: int = 0
    _started: float = 0.0

    def say(self, text: str) -> None:
        """One line."""
        self.console.print(text, markup=False, soft_wrap=True)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Name what is being done, and take its time."""
        self.say(f"{name} …")
        began = time.monotonic()
        try:
            yield
        finally:
            self.phases[name] = self.phases.get(name, 0.0) + time.monotonic() - began

    @contextmanager
    def cells(self, total: int) -> Iterator[None]:
        """Count cells up to `total`, saying how long it may take."""
        self._done, self._total, self._started = 0, total, time.monotonic()
        if not self.console.is_terminal:
            yield
            return
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("cells,"),
            TimeElapsedColumn(),
            TextColumn("gone,"),
            TimeRemainingColumn(),
            TextColumn("to go"),
        )
        with Progress(*columns, console=self.console, transient=True) as self._bar:
            self._task = self._bar.add_task("installing", total=total)
            yield
        self._bar = None

    def more(self, count: int) -> None:
        """There are `count` more cells to do than was thought."""
        self._total += count
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, total=self._total)

    def doing(self, what: str) -> None:
        """Say what is being done, where there is a bar to say it beside."""
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, description=what)

    def cell_done(self, name: str, records: Sequence[Record], seconds: float) -> None:
        """Count one cell, and say what it showed."""
        self._done += 1
        width = len(str(self._total))
        line = (
            f"[{self._done:>{width}}/{self._total}] {name}: {self.told(records)}  {seconds:.1f} s"
        )
        if self._bar is not None and self._task is not None:
            colour = _COLOURS[worst(records)]
            self._bar.console.print(line, style=colour, markup=False)
            self._bar.advance(self._task)
            return
        left = self._total - self._done
        if left and self._done >= 3 and self._done % 5 == 0:
            rate = (time.monotonic() - self._started) / self._done
            line += f"  (about {rate * left:.0f} s to go)"
        self.say(line)

    def told(self, records: Sequence[Record]) -> str:
        """What the records of one cell say, in a few words."""
        counts = Counter(
            f"{record.status}"
            + (f" ({record.defect or record.reason})" if record.defect or record.reason else "")
            for record in records
        )
        return ", ".join(f"{count} {what}" for what, count in sorted(counts.items()))


def worst(records: Sequence[Record]) -> Status:
    """The status that a user would want to know of first."""
    order = (
        Status.AFFECTED,
        Status.ERROR,
        Status.INCONCLUSIVE,
        Status.OK,
        Status.UNSUPPORTED,
        Status.NOT_RUN,
    )
    return min((record.status for record in records), key=order.index, default=Status.NOT_RUN)
