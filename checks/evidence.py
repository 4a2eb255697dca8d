"""The numbers behind a record, small enough to commit: a few hundred bytes of plain JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from checks.compare import margin
from checks.controls import Controls
from checks.diagnose import Diagnosis
from checks.observation import Run, short_trace
from checks.oracles import Answers


def rounded(value: float) -> float | str:
    """Two digits are what an error is good for; JSON has no infinity."""
    if not math.isfinite(value):
        return "not finite"
    return float(f"{value:.2g}")


def of_controls(controls: Controls) -> dict[str, Any]:
    """The controls that apply."""
    return {name: rounded(value) for name, value in vars(controls).items() if value is not None}


def of_diagnosis(diagnosis: Diagnosis) -> dict[str, Any]:
    """The hypothesis that matched, and how far off the others are."""
    words: dict[str, Any] = {
        "hypothesis": diagnosis.defect,
        "distance": rounded(diagnosis.distance),
        "distances": {name: rounded(value) for name, value in sorted(diagnosis.distances.items())},
    }
    if diagnosis.detail:
        words["detail"] = diagnosis.detail
    return words


def of_run(run: Run, answers: Answers, original: int) -> Mapping[str, Any]:
    """The run as the bug report would tell it: the last call, generated against expected.

    Where nothing differs, the step shown is the first past O, or the last.
    """
    words: dict[str, Any] = {"error": rounded(answers.uncached.worst)}
    if answers.reference is not None:
        words["error_reference"] = rounded(answers.reference.worst)
    index = answers.telling.first
    if index is not None:
        words["first_length"] = run.steps[index].length
    else:
        index = _crossing(run, original)
    step, expected = run.steps[index], answers.expected[index]
    words["margin"] = rounded(float(margin(expected).min()))
    words["generated"] = step.logits.argmax(dim=-1).tolist()
    words["expected"] = expected.argmax(dim=-1).tolist()
    if step.call is not None and 0 <= step.call < len(run.calls):
        words["last_call"] = str(run.calls[step.call])
    if run.calls:
        words["trace"] = short_trace(run.calls)
    words["tokens"] = len(run.steps)
    return words


def _crossing(run: Run, original: int) -> int:
    past: Sequence[int] = [
        index for index, step in enumerate(run.steps) if step.real_length > original
    ]
    return past[0] if past else len(run.steps) - 1
