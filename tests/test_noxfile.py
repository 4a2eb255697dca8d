"""The sessions of the noxfile: the names are a contract, and what they run is a command."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def nox(*arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run nox in this checkout."""
    return subprocess.run(
        [sys.executable, "-m", "nox", *arguments],
        cwd=ROOT,
        env={**os.environ, **environ, "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_sessions_are_those_of_the_contract() -> None:
    """And `matrix` is what runs without a name."""
    listed = [
        line.split()[:2] for line in nox("--list").stdout.splitlines() if line[:2] in ("* ", "- ")
    ]
    marks = {name: mark for mark, name in listed}
    assert {"report", "bisect", "own", "tests", "lint"} <= {
        name for name, mark in marks.items() if mark == "-"
    }
    assert {"plan", "cells(3.11/2.13.0)", "matrix"} <= {
        name for name, mark in marks.items() if mark == "*"
    }


def test_a_runtime_that_is_named_has_a_session() -> None:
    """Also one that the grid does not have."""
    listed = nox("--list", "--", "--runtimes", "3.12/2.8.0", "--fresh").stdout
    assert "* cells(3.12/2.8.0)" in listed


@pytest.mark.parametrize("text", ["[[runtimes", "", 'runtimes = "none"', "[[runtimes]]\nx = 1"])
def test_a_broken_grid_leaves_the_sessions_in_place(tmp_path: Path, text: str) -> None:
    """So that `plan` can say what is wrong with it."""
    grid = tmp_path / "grid.toml"
    grid.write_text(text, encoding="utf-8")
    listed = nox("--list", MATRIX_GRID=str(grid))
    assert listed.returncode == 0, listed.stderr
    assert "* plan" in listed.stdout
