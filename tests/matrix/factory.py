"""Records and releases for tests, with only what the test is about spelled out."""

from __future__ import annotations

from matrix.records import Defect, Evidence, Provenance, Reason, Record, Source, Status
from matrix.releases import Release

CASE = "phi3/decode-crossing/eager/cpu/float32"
REVISION = "0123456789ab"
OUTCOMES = {
    "ok": (Status.OK, None, None),
    "lost": (Status.AFFECTED, Defect.PREFIX_LOST, None),
    "mask": (Status.AFFECTED, Defect.WRONG_MASK, None),
    "error": (Status.ERROR, None, Reason.CRASHED),
    "unsupported": (Status.UNSUPPORTED, None, Reason.NO_MODEL),
    "unclear": (Status.INCONCLUSIVE, None, Reason.CONTROL_FAILED),
}


def record(
    version: str,
    outcome: str = "ok",
    *,
    case: str = CASE,
    torch: str = "2.13.0+cpu",
    python: str = "3.11.7",
    revision: str = REVISION,
    started_at: str = "2026-01-01T00:00:00Z",
    ref: str | None = None,
    commit: str | None = None,
    evidence: Evidence | None = None,
) -> Record:
    """A record of `case` on one release; `outcome` is a key of `OUTCOMES`."""
    model, scenario, attention, device, dtype = case.split("/")
    status, defect, reason = OUTCOMES[outcome]
    return Record(
        transformers=version,
        source=Source.GIT if ref else Source.INDEX,
        ref=ref,
        commit=commit,
        released_at=None,
        python=python,
        torch=torch,
        model=model,
        scenario=scenario,
        attention=attention,
        device=device,
        dtype=dtype,
        status=status,
        defect=defect,
        reason=reason,
        evidence=evidence or Evidence(),
        provenance=Provenance(check_revision=revision, started_at=started_at),
    )


def history(*outcomes: str) -> list[Record]:
    """Records of releases 1.0, 2.0, … with these outcomes."""
    return [record(f"{number}.0", outcome) for number, outcome in enumerate(outcomes, start=1)]


def release(version: str) -> Release:
    """A release on the index."""
    return Release(version=version, source=Source.INDEX)
