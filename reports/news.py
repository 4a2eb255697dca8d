"""What a report knows of the runs before it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from reports.changes import Change
    from reports.results import PastRun


@dataclass(frozen=True, slots=True, kw_only=True)
class News:
    """Differences from the run before, and the runs that a site keeps.

    Attributes:
        changes: What is new; None if no run before is known.
        since: When that run was; empty if none is known.
        runs: The runs that the site keeps, newest first, this one among them.
        problems: Why no run before is known, where one should have been.
    """

    changes: tuple[Change, ...] | None
    since: str
    runs: tuple[PastRun, ...]
    problems: tuple[str, ...]


NO_NEWS: Final = News(changes=None, since="", runs=(), problems=())
