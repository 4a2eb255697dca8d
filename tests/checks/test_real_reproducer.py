"""The script that ``--reproduce`` prints, run as a stranger would run it."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
import torch

from checks.catalog import SCENARIOS, Case
from checks.measure import measure
from checks.reproduce import script_for

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]

# Compiling and 4,096 tokens take seconds, and show no more of the script.
SCENARIO_NAMES = [name for name in SCENARIOS if name not in ("compiled", "true-scale")]


@pytest.mark.parametrize("scenario", SCENARIO_NAMES)
def test_the_script_shows_what_the_record_says(scenario: str, tmp_path: Path) -> None:
    """It exits with 1 where the case is affected, with 0 where it is ok, and needs none of ours."""
    case = Case("phi3", scenario, "eager")
    result = measure(case)
    if result.status not in ("ok", "affected"):
        pytest.skip(f"{case.id} is {result.status} here")
    if result.defect == "crash":
        pytest.skip("a crash shows itself")
    if "error" not in result.evidence and "error_reference" not in result.evidence:
        pytest.skip(f"{case.id}: {result.evidence.get('notes')}")  # refused, which is right too
    script = tmp_path / "reproducer.py"
    script.write_text(script_for(case), encoding="utf-8")
    # In this process, since importing a release takes longer than all the rest.
    try:
        with pytest.raises(SystemExit) as ended:
            runpy.run_path(str(script))
    finally:
        torch.set_grad_enabled(True)
    assert bool(ended.value.code) == (result.status == "affected")


def test_the_script_needs_nothing_of_ours(tmp_path: Path) -> None:
    """A stranger runs it, in a folder of their own."""
    case = Case("phi3", "forward-loop", "eager")
    script = tmp_path / "reproducer.py"
    script.write_text(script_for(case), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(script)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"},
    )
    affected = measure(case).status == "affected"
    assert done.returncode == (1 if affected else 0), done.stdout + done.stderr
    assert "transformers" in done.stdout


def test_the_bug_report_s_lines_are_there() -> None:
    """Whoever knows the report recognises it."""
    text = script_for(Case("phi3", "forward-loop", "eager"))
    for line in (
        "last generation call:",
        "generated next token:",
        "uncached full-prefix next token:",
    ):
        assert line in text
    assert len(text.splitlines()) < 120
