"""The check as an instrument, tested on real releases: `tests/checks/` inside a runtime."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from matrix.environment import cell_environ
from matrix.runtimes import interpreter
from tests.pipeline.harness import ROOT, Harness

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.slow, pytest.mark.real]

RELEASES = ("4.46.3", "latest")
"""Two that were right when this was written: a defect can only be planted where there is none.

The tests measure that themselves, before they plant anything.
"""


@pytest.fixture(scope="module")
def harness(tmp_path_factory: pytest.TempPathFactory, runtimes: Path) -> Harness:
    """A checkout with the layers of `RELEASES`."""
    harness = Harness(folder=tmp_path_factory.mktemp("instrument"), runtimes=runtimes)
    harness.write_grid(run=RELEASES, scenarios=("below-boundary",))
    done = harness.matrix("--no-refine")
    assert done.code == 0, done.output
    return harness


@pytest.mark.parametrize("place", range(len(RELEASES)), ids=RELEASES)
def test_what_is_planted_is_found_and_named_and_nothing_else(
    harness: Harness, place: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The tests of the oracles, controls, fingerprints, reproducer and planted defects."""
    layers = harness.folder / "work" / "layers" / "py3.11-torch2.13.0"
    layer = sorted(path.parent for path in layers.glob("*/transformers"))[place]
    python = interpreter(harness.runtimes / "runtimes" / "py3.11-torch2.13.0")
    environ = cell_environ(os.environ, tmp_path)
    done = subprocess.run(
        [
            *(python, "-m", "pytest", "tests/checks", "-q", "-p", "no:cacheprovider"),
            *("-W", "default", "--import-mode=importlib"),
        ],
        cwd=ROOT,
        env={**environ, "PYTHONPATH": str(layer), "REQUIRE_TRANSFORMERS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert "planted defects" in done.stdout
    with capsys.disabled():
        print(f"\n{layer.name}:", done.stdout[done.stdout.index("planted defects") :])
