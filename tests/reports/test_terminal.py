"""The terminal gets the same answer, in colour where there is some."""

from __future__ import annotations

from io import StringIO
from typing import TYPE_CHECKING

from rich.console import Console

from reports.site import render_site
from reports.terminal import print_answer
from tests.reports.factory import RUN, history

if TYPE_CHECKING:
    from pathlib import Path


def shown(tmp_path: Path, **console: object) -> str:
    """What is printed of two intervals."""
    answer = render_site(
        history({"1.0": "crash", "1.1": "ok", "1.2": "prefix_lost"}), RUN, tmp_path
    )
    out = StringIO()
    print_answer(answer, Console(file=out, width=80, **console))  # type: ignore[arg-type]
    return out.getvalue()


def test_the_answer_the_histories_and_the_page(tmp_path: Path) -> None:
    """In this order; plain text where there is no terminal."""
    text = shown(tmp_path)
    parts = (
        "Affected: 1.0 and 1.2, not fixed yet",
        "Measured 2026-11-29",
        "✕ affected: crash",
        "✕ affected: prefix lost",
        "transformers==1.1",
        str(tmp_path / "index.html"),
    )
    places = [text.replace("\n", "").find(part.replace("\n", "")) for part in parts]
    assert -1 not in places
    assert places == sorted(places)
    assert "\x1b" not in text


def test_colour_where_there_is_some(tmp_path: Path) -> None:
    """And never colour alone: the words are the same."""
    assert "\x1b[" in shown(tmp_path, force_terminal=True, color_system="standard")
