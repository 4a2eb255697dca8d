"""The picture of the histories: geometry only, so that a template can draw it as SVG.

Releases run along the horizontal axis in version order, one step each; each story is a row.
A release without an answer leaves its step empty: the dashed track shows through.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from reports.words import DEFECTS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matrix.records import Defect, Status
    from reports.stories import Common, Story
    from reports.verdicts import Interval

WIDTH: Final = 960
MARGIN: Final = 2
AXIS_HEIGHT: Final = 30
LABEL_HEIGHT: Final = 17
BAR_HEIGHT: Final = 24
ROW_GAP: Final = 16
TICK_ROOM: Final = 46
LETTER: Final = 7.2
LABEL_LETTERS: Final = 118


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A stretch of releases with one status; `label` is empty where there is no room."""

    x: float
    width: float
    style: str
    title: str
    label: str
    label_x: float

    @property
    def plate_width(self) -> float:
        """Width of the plain ground that a label needs on a pattern."""
        return round(len(self.label) * LETTER + 8, 1)

    @property
    def plate_x(self) -> float:
        """Where that ground begins."""
        return round(self.label_x - self.plate_width / 2, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One story: its label, where it lies, and its bars."""

    label_lines: tuple[str, ...]
    label_ys: tuple[float, ...]
    y: float
    bars: tuple[Bar, ...]

    @property
    def labels(self) -> tuple[tuple[str, float], ...]:
        """Lines of the label with their baselines."""
        return tuple(zip(self.label_lines, self.label_ys, strict=True))

    @property
    def text_y(self) -> float:
        """Baseline of the words in the bars."""
        return self.y + BAR_HEIGHT / 2 + 4.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """A mark of the horizontal axis; `label` is empty where there is no room."""

    x: float
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """A drawing `width` by `height` units large."""

    width: int
    height: float
    bar_height: int
    rows: tuple[Row, ...]
    ticks: tuple[Tick, ...]
    track_x: float
    track_width: float


def picture(stories: Sequence[Story], releases: Sequence[str], shared: Common) -> Picture | None:
    """Lay out the stories of one model over all known releases; None without any."""
    if not stories or not releases:
        return None
    step = (WIDTH - 2 * MARGIN) / len(releases)
    position = {name: index for index, name in enumerate(releases)}
    rows: list[Row] = []
    y = float(AXIS_HEIGHT)
    for story in stories:
        lines = tuple(line for way in story.ways(shared) for line in _wrap(way))
        ys = tuple(y + LABEL_HEIGHT * (index + 1) - 4 for index in range(len(lines)))
        y += LABEL_HEIGHT * len(lines) + 2
        rows.append(
            Row(
                label_lines=lines,
                label_ys=ys,
                y=y,
                bars=tuple(
                    bar
                    for interval in story.intervals
                    for bar in _bars(interval, releases, position, step)
                ),
            )
        )
        y += BAR_HEIGHT + ROW_GAP
    return Picture(
        width=WIDTH,
        height=round(y - ROW_GAP + 4, 1),
        bar_height=BAR_HEIGHT,
        rows=tuple(rows),
        ticks=_ticks(releases, step),
        track_x=MARGIN,
        track_width=WIDTH - 2 * MARGIN,
    )


def _wrap(text: str) -> list[str]:
    """Break a label at blanks, since SVG does not."""
    lines: list[str] = [""]
    for word in text.split(" "):
        if lines[-1] and len(lines[-1]) + 1 + len(word) > LABEL_LETTERS:
            lines.append(word)
        else:
            lines[-1] = f"{lines[-1]} {word}".strip()
    return lines


def _bars(
    interval: Interval, releases: Sequence[str], position: dict[str, int], step: float
) -> list[Bar]:
    """The bars of an interval: one for each stretch without an undecided release."""
    unknown = set(interval.unknown)
    stretches: list[list[int]] = []
    for index in range(position[interval.first], position[interval.last] + 1):
        if releases[index] in unknown:
            continue
        if stretches and stretches[-1][-1] == index - 1:
            stretches[-1].append(index)
        else:
            stretches.append([index])
    word = _word(interval)
    bars = []
    for members in stretches:
        x, width = MARGIN + members[0] * step, len(members) * step
        label = next((text for text in (word, word[0]) if len(text) * LETTER + 8 <= width), "")
        bars.append(
            Bar(
                x=round(x, 2),
                width=round(max(width - 1, 1), 2),
                style=style(interval.status, interval.defect),
                title=f"{releases[members[0]]} to {releases[members[-1]]}: {word}",
                label=label,
                label_x=round(x + width / 2, 2),
            )
        )
    return bars


def _word(interval: Interval) -> str:
    if interval.defect is None:
        return "✓ ok"
    return f"✕ {DEFECTS[interval.defect]}"


def style(status: Status | None, defect: Defect | None) -> str:
    """Name of the style of a status: the defect where there is one."""
    if status is None:
        return "untested"
    return str(status) if defect is None else str(defect)


def _ticks(releases: Sequence[str], step: float) -> tuple[Tick, ...]:
    """A tick where a minor release begins, labelled as far as there is room."""
    ticks: list[Tick] = []
    seen: set[str] = set()
    last_label = -float(TICK_ROOM)
    for index, name in enumerate(releases):
        minor = ".".join(name.split(".")[:2])
        if minor in seen:
            continue
        seen.add(minor)
        x = round(MARGIN + index * step, 2)
        room = x - last_label >= TICK_ROOM and x + TICK_ROOM <= WIDTH
        if room:
            last_label = x
        ticks.append(Tick(x=x, label=minor if room else ""))
    return tuple(ticks)
