"""The grid file: the shipped one is right, and every mistake in another is told at once."""

from __future__ import annotations

from pathlib import Path

import pytest
from packaging.version import Version

from matrix.errors import GridError
from matrix.grid import Runtime, load_grid, parse_grid

SHIPPED = Path(__file__).resolve().parents[2] / "matrix" / "grid.toml"


def test_the_shipped_grid_is_what_the_readme_promises() -> None:
    """Newest patch of every minor since 4.41.0, 5.16.1, the newest, main; one runtime."""
    grid = load_grid(SHIPPED)
    assert grid.since == Version("4.41.0")
    assert grid.runtimes[0] == Runtime(python="3.11", torch="2.13.0")
    assert len(grid.run) == 4
    assert len(grid.selection.cases()) == 5 * 2 * 2


def test_every_mistake_is_in_one_message() -> None:
    """Each with where it stands and what is allowed."""
    text = SHIPPED.read_text(encoding="utf-8")
    for right, wrong in {
        'python = "3.11"': 'python = "3"',
        'scenarios = ["core"]': 'scenarios = ["cor"]',
        'attention = ["eager", "sdpa"]': 'attention = "eager"',
        'since = "4.41.0"': 'since = "soon"',
        '"latest", "main"]': '"latst", "main"]',
        "stale_after_days = 7": "stale_days = 7",
        "workers = 0 ": "workers = true ",
    }.items():
        assert right in text
        text = text.replace(right, wrong)
    with pytest.raises(GridError) as caught:
        parse_grid(text)
    message = caught.value.message
    assert message.startswith("grid.toml has 8 mistakes:")
    for part in (
        "runtimes.1.python: '3' is not a Python such as",
        "cases.scenarios: unknown scenario 'cor'; did you mean core?",
        "cases.attention: 'eager' is not a list of names",
        "releases.since: 'soon' is not a version",
        "releases.run: 'latst' is no release spec; allowed: ",
        "releases.stale_days: no such setting; there are ",
        "releases.stale_after_days: this setting is missing",
        "limits.workers: True is not a whole number of at least 0",
    ):
        assert part in message


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("[releases", "is not TOML"),
        ("", "[releases]: this table is missing"),
        ("runtimes = 3", "[[runtimes]]: at least one is wanted"),
    ],
)
def test_a_grid_that_is_none_says_so(text: str, part: str) -> None:
    """And nothing else goes wrong on the way."""
    with pytest.raises(GridError) as caught:
        parse_grid(text)
    assert part in caught.value.message


def test_a_missing_file_is_named() -> None:
    """With its path."""
    with pytest.raises(GridError, match="nowhere"):
        load_grid(Path("nowhere/grid.toml"))


def test_a_runtime_has_a_name_and_a_folder() -> None:
    """Also with packages beside torch, which may hold any character."""
    runtime = Runtime(python="3.11", torch="2.9.1", extras=("tokenizers==0.21.0",))
    assert runtime.name == "3.11/2.9.1+tokenizers==0.21.0"
