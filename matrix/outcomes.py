"""What a cell's process left behind, turned into records.

Each process appends lines to a file as things happen (the contract of ``python -m checks``).
From a process that died one can still tell which case killed it: the last one that started.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from matrix.records import (
    Defect,
    Evidence,
    Provenance,
    Reason,
    Record,
    Source,
    Status,
    require_coherence,
)
from matrix.uv import last_lines

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from matrix.layers import NotInstalled
    from matrix.releases import Release
    from matrix.runtimes import Environment


class EnvironmentLine(msgspec.Struct, frozen=True, tag_field="kind", tag="environment"):
    """What the cell found itself in."""

    transformers: str
    torch: str
    python: str
    python_build: str | None = None
    platform: str | None = None
    machine: str | None = None
    devices: dict[str, str | None] = {}


class StartLine(msgspec.Struct, frozen=True, tag_field="kind", tag="start"):
    """A case began."""

    case: str


class ResultLine(msgspec.Struct, frozen=True, tag_field="kind", tag="result"):
    """A case ended."""

    case: str
    status: Status
    defect: Defect | None = None
    reason: Reason | None = None
    evidence: Evidence = msgspec.field(default_factory=Evidence)
    seconds: float = 0.0

    def __post_init__(self) -> None:
        require_coherence(self.status, self.defect, self.reason)


class ImportFailedLine(msgspec.Struct, frozen=True, tag_field="kind", tag="import_failed"):
    """The release could not be imported, so that no case was run."""

    reason: Reason
    message: str
    traceback: str = ""


_DECODER = msgspec.json.Decoder(EnvironmentLine | StartLine | ResultLine | ImportFailedLine)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What one process wrote, and how it ended.

    Attributes:
        environment: What it found itself in; None if it did not get so far.
        results: The cases that ended.
        unfinished: The case that had started and not ended.
        import_failed: Why the release could not be imported.
        ending: ``done``, ``timeout``, ``died`` or ``failed``.
        message: How the process ended, in words.
        log: End of what it printed.
    """

    environment: EnvironmentLine | None
    results: tuple[ResultLine, ...]
    unfinished: str | None
    import_failed: ImportFailedLine | None
    ending: str
    message: str
    log: str

    @property
    def reason(self) -> Reason:
        """The code for what was not finished."""
        text = f"{self.message}\n{self.log}"
        if self.ending == "timeout":
            return Reason.TIMEOUT
        if any(sign in text for sign in OUT_OF_MEMORY):
            return Reason.OUT_OF_MEMORY
        return Reason.CRASHED if self.ending == "died" else Reason.CHECK_ERROR


OUT_OF_MEMORY = ("MemoryError", "can't allocate memory", "bad_alloc", "out of memory")
"""Signs that a process was refused memory."""


def read_outcome(out: Path, log: Path, *, ending: str, message: str) -> Outcome:
    """Read what a process wrote. A last line that was cut off is what the process died in."""
    environment: EnvironmentLine | None = None
    import_failed: ImportFailedLine | None = None
    results: list[ResultLine] = []
    started: str | None = None
    for raw in out.read_bytes().splitlines() if out.exists() else ():
        try:
            line = _DECODER.decode(raw)
        except msgspec.MsgspecError as error:
            result = _unreadable(started, raw, error)
            if result is not None:
                results.append(result)
                started = None
            continue
        if isinstance(line, EnvironmentLine):
            environment = line
        elif isinstance(line, StartLine):
            started = line.case
        elif isinstance(line, ResultLine):
            results.append(line)
            started = None
        else:
            import_failed = line
    text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
    return Outcome(
        environment=environment,
        results=tuple(results),
        unfinished=started,
        import_failed=import_failed,
        ending=ending,
        message=message,
        log=last_lines(text, 15),
    )


def _unreadable(started: str | None, raw: bytes, error: Exception) -> ResultLine | None:
    """A result that does not keep the contract is an error of the check, never a verdict."""
    if started is None or not raw.endswith(b"}"):
        return None
    return ResultLine(
        case=started,
        status=Status.ERROR,
        reason=Reason.CHECK_ERROR,
        evidence=Evidence(message=f"the check wrote a result that is none: {error}"),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordMaker:
    """Makes the records of one cell: knows everything that they share.

    Attributes:
        release: The release.
        runtime: The runtime's environment; says which Python and torch where the cell did not.
        provenance: As far as it is known before the cell ran.
    """

    release: Release
    runtime: Environment
    provenance: Provenance

    def from_outcome(self, outcome: Outcome, cases: Sequence[str]) -> tuple[Record, ...]:
        """Records for those of `cases` that this process settled, in the order of `cases`.

        That is every case that ended and the one that the process died in; all, where no
        further process could do better (the release cannot be imported, or the process ended
        before the first case).
        """
        results = {result.case: result for result in outcome.results}
        broken = outcome.import_failed
        if broken is not None:
            reason = broken.reason
            if any(sign in broken.message + broken.traceback for sign in OUT_OF_MEMORY):
                reason = Reason.OUT_OF_MEMORY
            evidence = Evidence(
                message=broken.message, log=last_lines(broken.traceback, 15) or None
            )
            status = Status.UNSUPPORTED if reason is Reason.TORCH_TOO_OLD else Status.ERROR
            results = {
                case: ResultLine(case=case, status=status, reason=reason, evidence=evidence)
                for case in cases
            }
        elif outcome.unfinished or not results:
            evidence = Evidence(message=_how_it_ended(outcome), log=outcome.log or None)
            lost = [outcome.unfinished] if outcome.unfinished else cases
            for case in lost:
                results[case] = ResultLine(
                    case=case, status=Status.ERROR, reason=outcome.reason, evidence=evidence
                )
        return tuple(
            self._record(results[case], outcome.environment) for case in cases if case in results
        )

    def not_installed(self, why: NotInstalled, cases: Iterable[str]) -> tuple[Record, ...]:
        """Records that say why nothing could be run."""
        evidence = Evidence(message=why.message, log=why.log or None)
        return self.all_alike(cases, Status.ERROR, why.reason, evidence)

    def all_alike(
        self, cases: Iterable[str], status: Status, reason: Reason, evidence: Evidence
    ) -> tuple[Record, ...]:
        """The same record for every case."""
        return tuple(
            self._record(
                ResultLine(case=case, status=status, reason=reason, evidence=evidence), None
            )
            for case in cases
        )

    def _record(self, result: ResultLine, environment: EnvironmentLine | None) -> Record:
        model, scenario, attention, device, dtype = result.case.split("/")
        provenance = self.provenance
        if environment is not None:
            provenance = msgspec.structs.replace(
                provenance,
                python_build=environment.python_build,
                platform=environment.platform,
            )
        version = self.release.version
        if self.release.source is not Source.INDEX and environment is not None:
            version = environment.transformers
        return Record(
            transformers=version,
            source=self.release.source,
            ref=self.release.ref,
            commit=self.release.commit,
            released_at=self.release.released_at,
            python=environment.python if environment else self.runtime.python,
            torch=environment.torch if environment else self.runtime.torch,
            model=model,
            scenario=scenario,
            attention=attention,
            device=device,
            dtype=dtype,
            status=result.status,
            defect=result.defect,
            reason=result.reason,
            evidence=result.evidence,
            provenance=provenance,
        )


def _how_it_ended(outcome: Outcome) -> str:
    if outcome.ending == "timeout":
        return "the cell was stopped: it took longer than it may"
    if outcome.ending == "died":
        return f"the process died: {outcome.message}"
    return outcome.message or "the process ended without a result"
