"""Records for tests: invented releases, so that no real version's verdict is assumed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from matrix.records import Defect, Evidence, Provenance, Reason, Record, Source, Status
from reports.run import RunInfo

if TYPE_CHECKING:
    from collections.abc import Iterable

REVISION = "0123456789ab"

RUN = RunInfo(generated_at="2026-11-30T04:05:06Z", check_revision=REVISION, harness_commit="c" * 40)

OK = "ok"
"""Shorthand for `outcomes`: a status, a defect or a reason by its code."""


def record(transformers: str = "1.0.0", outcome: str = OK, **changes: Any) -> Record:
    """A record of `transformers` with an outcome: a status, a defect or a reason code."""
    status, defect, reason = _outcome(outcome)
    defaults: dict[str, Any] = {
        "transformers": transformers,
        "source": Source.INDEX,
        "ref": None,
        "commit": None,
        "released_at": "2026-01-02T03:04:05Z",
        "python": "3.11.7",
        "torch": "2.13.0+cpu",
        "model": "phi3",
        "scenario": "decode-crossing",
        "attention": "eager",
        "device": "cpu",
        "dtype": "float32",
        "status": status,
        "defect": defect,
        "reason": reason,
        "evidence": _evidence(status),
        "provenance": provenance(),
    }
    return Record(**(defaults | changes))


def provenance(**changes: Any) -> Provenance:
    """Where a record came from."""
    defaults: dict[str, Any] = {
        "check_revision": REVISION,
        "started_at": "2026-11-29T10:00:00Z",
        "platform": "Linux x86_64",
        "process": "fork",
        "isolation": "layer",
    }
    return Provenance(**(defaults | changes))


def main_branch(outcome: str = OK, **changes: Any) -> Record:
    """A record of the ref `main`."""
    defaults: dict[str, Any] = {
        "source": Source.GIT,
        "ref": "main",
        "commit": "3758eba846" + "0" * 30,
        "released_at": None,
    }
    return record("9.0.0.dev0", outcome, **(defaults | changes))


def history(outcomes: dict[str, str], **changes: Any) -> list[Record]:
    """A record for each release and outcome."""
    return [record(name, outcome, **changes) for name, outcome in outcomes.items()]


def cases(records: Iterable[Record], **fields: tuple[str, ...]) -> list[Record]:
    """Each record once for every value of each field: ``attention=("eager", "sdpa")``."""
    import msgspec

    found = list(records)
    for name, values in fields.items():
        found = [msgspec.structs.replace(r, **{name: value}) for r in found for value in values]
    return found


def some_records() -> list[Record]:
    """Two intervals, a gap, a release in doubt, main, a second model, a missing device."""
    core = history(
        {
            "1.0": "stale_keys",
            "1.1": "ok",
            "1.2": "prefix_lost",
            "1.3": "prefix_lost",
            "1.4": "timeout",
            "1.5": "ok",
            "1.6": "ok",
        }
    )
    return [
        *cases(core, attention=("eager", "sdpa"), scenario=("decode-crossing", "left-padded")),
        *history(dict.fromkeys(("1.0", "1.3", "1.6"), "no_device"), device="cuda"),
        *history({"1.2": "no_model", "1.3": "ok", "1.6": "crash", "2.0": "ok"}, model="phimoe"),
        main_branch("ok"),
        main_branch("ok", scenario="left-padded"),
    ]


def _outcome(code: str) -> tuple[Status, Defect | None, Reason | None]:
    if code in set(Defect):
        return Status.AFFECTED, Defect(code), None
    if code in set(Status):
        status = Status(code)
        assert status in (Status.OK, Status.INCONCLUSIVE), f"{code} needs a defect or a reason"
        return status, None, None
    reason = Reason(code)
    if reason in (Reason.NO_MODEL, Reason.NO_BACKEND, Reason.NO_FEATURE):
        return Status.UNSUPPORTED, None, reason
    if reason in (Reason.NO_DEVICE, Reason.NOT_SELECTED, Reason.UNREACHABLE):
        return Status.NOT_RUN, None, reason
    return Status.ERROR, None, reason


def _evidence(status: Status) -> Evidence:
    if status is Status.OK:
        return Evidence(
            tolerance=1e-4, error=3.2e-7, trace="4+0 1+4 1+5 1+6 1+7 9+0 1+9", seed=0, tokens=7
        )
    if status is Status.AFFECTED:
        return Evidence(
            tolerance=1e-4,
            error=0.83,
            first_length=10,
            margin=0.31,
            generated=(2, 26),
            expected=(32, 26),
            last_call="([[32], [59]], [[8], [8]], None)",
            trace="4+0 1+4 1+5 1+6 1+7 1+0",
            seed=0,
            tokens=7,
        )
    return Evidence(message="nothing to measure")
