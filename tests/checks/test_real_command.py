"""``python -m checks`` as the harness and a person call it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from checks.revision import check_revision

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]
ROOT = Path(__file__).resolve().parents[2]


def _run(
    *arguments: str, given: str | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "checks", *arguments],
        cwd=ROOT,
        input=given,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1", **environment},
    )


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_every_case_gives_a_start_and_a_result(tmp_path: Path) -> None:
    """After one line about the environment, in order, and the status says what came of it."""
    out = tmp_path / "out.jsonl"
    done = _run("--scenarios", "below-boundary", "rotary-probe", "--out", str(out))
    first, *rest = _lines(out)
    assert first["kind"] == "environment"
    assert first["check_revision"] == check_revision()
    assert first["devices"]["cpu"]
    kinds = [(line["kind"], line["case"]) for line in rest]
    cases = [
        f"phi3/{scenario}/{attention}/cpu/float32"
        for scenario in ("below-boundary", "rotary-probe")
        for attention in ("eager", "sdpa")
    ]
    assert kinds == [(kind, case) for case in cases for kind in ("start", "result")]
    statuses = {line["status"] for line in rest if line["kind"] == "result"}
    assert done.returncode == (1 if "affected" in statuses else 0), done.stdout + done.stderr


def test_cases_come_from_standard_input(tmp_path: Path) -> None:
    """As the harness passes them."""
    out = tmp_path / "out.jsonl"
    case = "phi3/below-boundary/eager/cpu/float32"
    _run("--cases", "-", "--out", str(out), given=f"{case}\n")
    assert [line["case"] for line in _lines(out)[1:]] == [case, case]


def test_wrong_words_are_usage() -> None:
    """With a message, and nothing measured."""
    done = _run("--scenarios", "decode-crosing")
    assert done.returncode == 2
    assert "did you mean decode-crossing?" in done.stderr


def test_a_user_s_own_pytest_changes_nothing(tmp_path: Path) -> None:
    """Neither options nor plugins from outside reach a measurement."""
    out = tmp_path / "out.jsonl"
    done = _run(
        "--cases",
        "-",
        "--out",
        str(out),
        given="phi3/below-boundary/eager/cpu/float32\n",
        PYTEST_ADDOPTS="--maxfail=0 --no-such-option",
        PYTEST_PLUGINS="no_such_plugin",
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    assert _lines(out)[-1]["kind"] == "result"


def test_a_broken_release_is_told_and_nothing_measured(tmp_path: Path) -> None:
    """One line with the reason, and no results."""
    broken = tmp_path / "layer" / "transformers"
    broken.mkdir(parents=True)
    (broken / "__init__.py").write_text("raise ImportError('broken on purpose')\n")
    out = tmp_path / "out.jsonl"
    done = _run("--out", str(out), PYTHONPATH=str(broken.parent))
    (line,) = _lines(out)
    assert (line["kind"], line["reason"]) == ("import_failed", "import_failed")
    assert "broken on purpose" in line["message"]
    assert done.returncode == 3


def test_a_case_that_hangs_costs_its_own_record(tmp_path: Path) -> None:
    """It ends as a timeout, and the next one is measured."""
    out = tmp_path / "out.jsonl"
    program = (
        "import sys, time, checks.measure as m; from checks.__main__ import main; "
        "real = m._measure; "
        "m._measure = lambda c: time.sleep(60) if c.attention == 'eager' else real(c); "
        "sys.exit(main(['--scenarios', 'below-boundary', '--time-limit', '2', '--out', "
        f"{str(out)!r}]))"
    )
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=False, timeout=120)
    results = [line for line in _lines(out) if line["kind"] == "result"]
    assert len(results) == 2
    assert (results[0]["status"], results[0]["reason"]) == ("error", "timeout")


def test_nothing_is_written_into_the_folder(tmp_path: Path) -> None:
    """Python's own caches aside, a measurement leaves no trace."""

    def files() -> set[str]:
        return {
            path.as_posix()
            for path in (ROOT / "checks").rglob("*")
            if "__pycache__" not in path.parts
        }

    before = files()
    _run("--scenarios", "below-boundary", "--out", str(tmp_path / "out.jsonl"))
    assert files() == before


def test_a_verdict_agrees_with_its_exit_status() -> None:
    """On whatever release this is, and without pytest."""
    done = _run("--verdict", "--scenarios", "decode-crossing", "--attention", "eager")
    verdict = done.stdout.splitlines()[3].split()
    if done.returncode == 0:
        assert verdict[:2] == ["NOT", "AFFECTED"]
    elif done.returncode == 1:
        assert verdict[0] == "AFFECTED"
        assert "Without another release" in done.stdout
    else:
        assert (done.returncode, verdict[:2]) == (3, ["NOT", "DECIDED:"])
