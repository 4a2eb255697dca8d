"""Measures one case: run the scenario, ask the oracles, check the controls, name the defect."""

from __future__ import annotations

import time
import traceback
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from checks import adapt, controls, evidence, oracles, workarounds
from checks.bench import Bench
from checks.catalog import SCENARIOS, Case
from checks.compare import TOLERANCES, Agreement, Tolerance
from checks.controls import Controls
from checks.diagnose import Diagnosis, diagnose
from checks.errors import NotMeasured, NotRun, Unsupported, from_compiler
from checks.judge import judge
from checks.models import SEED
from checks.observation import Run
from checks.oracles import Answers, reference_for
from checks.reference import Reference
from checks.result import Result
from checks.scenarios import registry

# Older torch knows it on CUDA only, under another name.
OUT_OF_MEMORY = (MemoryError, getattr(torch, "OutOfMemoryError", torch.cuda.OutOfMemoryError))


def measure(case: Case) -> Result:
    """Measure *case*. Whatever :class:`Exception` it meets, there is a result."""
    started = time.perf_counter()
    try:
        result = _measure(case)
    except NotMeasured as stopped:
        result = Result(case, stopped.status, None, stopped.reason, {"message": str(stopped)})
    except OUT_OF_MEMORY as error:
        result = Result(case, "error", None, "out_of_memory", {"message": describe(error)})
    except Exception as error:  # noqa: BLE001 - whatever it is, it costs this record only
        if from_compiler(error):
            message = f"torch cannot compile {case.attention} here: {describe(error)}"
            result = Result(case, "unsupported", None, "no_backend", {"message": message})
        else:
            result = Result(case, "error", None, "check_error", {"message": describe(error)})
    return replace(result, seconds=round(time.perf_counter() - started, 3))


def device_present(device: str) -> bool:
    """Whether this machine and this torch have *device*."""
    if device == "cpu":
        return True
    available = getattr(getattr(torch, device, None), "is_available", None)
    return callable(available) and bool(available())


def describe(error: BaseException, frames: int = 3) -> str:
    """An exception and the innermost places it came through, without this machine's paths."""
    places = [
        f"{Path(frame.filename).name}:{frame.lineno} {frame.name}"
        for frame in traceback.extract_tb(error.__traceback__)[-frames:]
    ]
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}"[:300] + f" ({' > '.join(places)})"


def _measure(case: Case) -> Result:
    if not device_present(case.device):
        raise NotRun("no_device", f"torch finds no {case.device}")
    tolerance = TOLERANCES[case.dtype]
    plan = registry.plan_of(case.scenario)
    below = None if plan.own_control else _negative_control(case, plan, tolerance)
    bench = Bench.build(case, plan.shape)
    reference = reference_for(bench)
    try:
        run = plan.run(bench)
    except (NotMeasured, *OUT_OF_MEMORY):
        raise
    except Exception as error:
        if from_compiler(error):
            raise
        if plan.own_control:  # whether the crossing is to blame, only a control can tell
            below = _negative_control(case, plan, tolerance)
        return _crashed(bench, plan, reference, error, below, tolerance)
    if not run.steps:
        return _judged_without_logits(bench, run, tolerance)
    answers = oracles.ask(bench, run, reference, tolerance)
    if plan.own_control:
        below = controls.below_in_itself(bench, run, answers, tolerance)
    return _judged(bench, plan, reference, run, answers, below, tolerance)


def _negative_control(case: Case, plan: registry.Plan, tolerance: Tolerance) -> float | None:
    """The error of the scenario where nothing crosses.

    Raises:
        Unsupported: it fails even there, so this release cannot do it.
    """
    control = Bench.build(case, plan.shape, crossing=False)
    try:
        return controls.below(control, plan.run(control), tolerance)
    except (NotMeasured, *OUT_OF_MEMORY):
        raise
    except Exception as error:
        if from_compiler(error):
            raise
        # It fails even where nothing crosses. Where the release may lack what the scenario needs,
        # or its model can't even be called, it cannot do it; else the check doesn't understand it.
        if SCENARIOS[case.scenario].optional:
            raise Unsupported("no_feature", describe(error)) from None
        _require_forward(control)
        raise


def _require_forward(bench: Bench) -> None:
    """Insist that the model can be called at all.

    Raises:
        Unsupported: ``no_feature``, it can't.
    """
    try:
        adapt.call(bench.model, input_ids=bench.to_device(bench.prompt(4)))
    except Exception as error:  # noqa: BLE001 - a release may break in any way
        message = f"the model does not run with LongRoPE: {describe(error)}"
        raise Unsupported("no_feature", message) from None


def _common(bench: Bench, tolerance: Tolerance) -> dict[str, Any]:
    return {
        "tolerance": tolerance.agree,
        "attention_used": adapt.attention_used(bench.model),
        "seed": SEED,
    }


def _crashed(
    bench: Bench,
    plan: registry.Plan,
    reference: Reference | None,
    error: Exception,
    below: float | None,
    tolerance: Tolerance,
) -> Result:
    """The scenario raised and its control did not: the crossing is what broke it."""
    found = {
        **_common(bench, tolerance),
        "controls": evidence.of_controls(Controls(below, None, None, None)),
        "message": describe(error),
    }
    if below is None or tolerance.verdict(below) is not Agreement.AGREE:
        return Result(bench.case, "inconclusive", None, "control_failed", found)
    found["hypothesis"] = "crash"
    _try_workarounds(bench.case, plan, reference, tolerance, found)
    return Result(bench.case, "affected", "crash", None, found)


def _try_workarounds(
    case: Case,
    plan: registry.Plan,
    reference: Reference | None,
    tolerance: Tolerance,
    found: dict[str, Any],
) -> None:
    tried = workarounds.tried(case, plan, reference, tolerance)
    if tried:
        found["workarounds"] = tried


def _judged_without_logits(bench: Bench, run: Run, tolerance: Tolerance) -> Result:
    """Rotary tables, and configurations that are refused: compared with the reference alone."""
    found = _common(bench, tolerance)
    status = "ok"
    if run.reference_error is not None:
        verdict = judge(None, tolerance.verdict(run.reference_error))
        status = verdict.status
        found["error_reference"] = evidence.rounded(run.reference_error)
        found.update(oracles=verdict.oracles, reading=verdict.reading)
    return _finish(bench, run, status, None, found)


def _judged(
    bench: Bench,
    plan: registry.Plan,
    reference: Reference | None,
    run: Run,
    answers: Answers,
    below: float | None,
    tolerance: Tolerance,
) -> Result:
    measured = Controls(below, None, None, controls.sabotage(bench, tolerance))
    if reference is not None:
        longest = max(run.steps, key=lambda step: step.length)
        power, last_token = controls.power(reference, longest)
        measured = replace(measured, power=power, last_token=last_token)
    verdict = judge(
        answers.uncached.agreement,
        None if answers.reference is None else answers.reference.agreement,
    )
    found = {
        **_common(bench, tolerance),
        **evidence.of_run(run, answers, bench.boundary),
        "oracles": verdict.oracles,
        "reading": verdict.reading,
        "controls": evidence.of_controls(measured),
    }
    complaint = measured.complaint(tolerance)
    if complaint is not None:
        found["message"] = complaint
        return Result(bench.case, "inconclusive", None, "control_failed", found)
    defect = None
    if verdict.status == "affected":
        defect = _named(reference, run, answers, tolerance, found)
        if answers.uncached.first is not None:  # a model that is wrong is so in every use
            _try_workarounds(bench.case, plan, reference, tolerance, found)
    elif verdict.status == "ok":
        flaw = oracles.mischosen(run, answers, tolerance)
        if flaw is not None:
            run = replace(run, flaws=(*run.flaws, flaw))
    return _finish(bench, run, verdict.status, defect, found)


def _named(
    reference: Reference | None,
    run: Run,
    answers: Answers,
    tolerance: Tolerance,
    found: dict[str, Any],
) -> str:
    """The defect's name, by its fingerprint at the first step that differs.

    Where the cached run agrees with the model and both are wrong, the last such step tells more:
    what is wrong from the first token on often shows as something lesser below O.
    """
    differing = answers.telling.differing
    if reference is None or not differing:
        return "unclassified"
    diagnosis = _diagnosed(reference, run, *differing[0], tolerance)
    if answers.uncached.first is None and len(differing) > 1:
        last = _diagnosed(reference, run, *differing[-1], tolerance)
        if last.defect != "unclassified":
            diagnosis = last
    found.update(evidence.of_diagnosis(diagnosis))
    return diagnosis.defect


def _diagnosed(
    reference: Reference, run: Run, index: int, rows: tuple[int, ...], tolerance: Tolerance
) -> Diagnosis:
    step = run.steps[index]
    call = run.calls[step.call] if step.call is not None and run.calls else None
    return diagnose(reference, step, rows, call, tolerance)


def _finish(
    bench: Bench, run: Run, status: str, defect: str | None, found: dict[str, Any]
) -> Result:
    """Add what shows beside the logits: a flaw makes ``affected`` what would have been ok."""
    if run.notes:
        found["notes"] = list(run.notes)
    if run.flaws:
        found["message"] = "; ".join(flaw.message for flaw in run.flaws)
        if status in ("ok", "affected") and defect in (None, "unclassified"):
            status, defect = "affected", run.flaws[0].defect
            found["hypothesis"] = defect
    if status == "affected" and defect is None:
        defect = "unclassified"
    return Result(bench.case, status, defect, None, found)
