"""What one case showed in one cell, as data: the record and the words it is written in.

The words are the contract of DESIGN.md, section 4. Records are validated once, where JSON
comes in (`msgspec` does it); inside, they are frozen and typed.
"""

from __future__ import annotations

from enum import StrEnum
from functools import cache
from typing import Final

import msgspec
from packaging.version import Version

SCHEMA_VERSION: Final = 1


class Status(StrEnum):
    """What a record says of its case. Only `OK` and `AFFECTED` are conclusive."""

    OK = "ok"
    AFFECTED = "affected"
    INCONCLUSIVE = "inconclusive"
    UNSUPPORTED = "unsupported"
    NOT_RUN = "not_run"
    ERROR = "error"

    @property
    def conclusive(self) -> bool:
        """Whether this status decides intervals. Everything else must look unknown."""
        return self in (Status.OK, Status.AFFECTED)


class Defect(StrEnum):
    """The cause named for an affected record."""

    PREFIX_LOST = "prefix_lost"
    STALE_KEYS = "stale_keys"
    WRONG_MASK = "wrong_mask"
    WRONG_FACTOR = "wrong_factor"
    WRONG_SCALING = "wrong_scaling"
    TRUNCATED_CACHE = "truncated_cache"
    NON_FINITE = "non_finite"
    CRASH = "crash"
    UNCLASSIFIED = "unclassified"


class Reason(StrEnum):
    """Why a record is not conclusive."""

    INSTALL_FAILED = "install_failed"
    DEPENDENCY_CONFLICT = "dependency_conflict"
    IMPORT_FAILED = "import_failed"
    CRASHED = "crashed"
    OUT_OF_MEMORY = "out_of_memory"
    TIMEOUT = "timeout"
    TORCH_TOO_OLD = "torch_too_old"
    NO_DEVICE = "no_device"
    NO_MODEL = "no_model"
    NO_BACKEND = "no_backend"
    NO_FEATURE = "no_feature"
    UNREACHABLE = "unreachable"
    NO_SUCH_RELEASE = "no_such_release"
    NOT_SELECTED = "not_selected"
    CONTROL_FAILED = "control_failed"
    CHECK_ERROR = "check_error"


class Source(StrEnum):
    """Where a release was installed from."""

    INDEX = "index"
    GIT = "git"
    PATH = "path"


class Controls(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the controls measured: relative errors, no unit; None where one does not apply."""

    below: float | None = None
    power: float | None = None
    last_token: float | None = None
    sabotage: float | None = None


class Evidence(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """The numbers behind a status. Relative errors are max |difference| / max |logit|.

    Attributes:
        tolerance: Largest relative error that counts as agreement.
        error: Largest relative error against the uncached oracle (U).
        error_reference: Largest relative error against the independent reference (R).
        first_length: First total length, in tokens, at which the logits differ.
        margin: Gap between the two best logits there, relative to the largest.
        generated: Next token of each row at `first_length`, as generated.
        expected: Next token of each row there, by a forward over the uncached full prefix.
        last_call: The forward behind `generated`, in the bug report's form:
            ``(input ids, position ids, cached length)``.
        trace: Tokens fed + tokens cached, forward by forward: ``4+0 1+4 …``.
        hypothesis: The defect whose predicted logits match the observed ones.
        distance: Relative error between the two.
        detail: What exactly the hypothesis says: ``only the last 1 of 9 tokens``.
        distances: The same for every hypothesis tried.
        workarounds: What the same case showed under each workaround that was tried, by name.
        oracles: Which of U and R agree, in words.
        reading: What that combination means (CHECK.md, "Two oracles").
        controls: What the controls measured.
        attention_used: The attention implementation that really ran.
        seed: Seed of the weights and prompts.
        tokens: How many tokens were generated.
        message: Why nothing was measured, or the error's text.
        log: End of the log of what failed.
        notes: Anything else worth knowing.
    """

    tolerance: float | None = None
    error: float | None = None
    error_reference: float | None = None
    first_length: int | None = None
    margin: float | None = None
    generated: tuple[int, ...] | None = None
    expected: tuple[int, ...] | None = None
    last_call: str | None = None
    trace: str | None = None
    hypothesis: str | None = None
    distance: float | None = None
    detail: str | None = None
    distances: dict[str, float | None] | None = None
    workarounds: dict[str, Status] | None = None
    oracles: str | None = None
    reading: str | None = None
    controls: Controls | None = None
    attention_used: str | None = None
    seed: int | None = None
    tokens: int | None = None
    message: str | None = None
    log: str | None = None
    notes: tuple[str, ...] = ()


class Provenance(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """Where a record came from; one for all the records that a cell wrote in one run.

    Attributes:
        check_revision: Digest of the sources of `checks/` that could change a measurement.
        started_at: When the cell began, ISO 8601 in UTC.
        harness_commit: Commit of this repository, with ``+`` where files were changed.
        extras: What the runtime has beside torch because the grid says so.
        packages: Key of the lock: the exact packages of the cell (see `matrix.ledger`).
        python_build: Build of the interpreter.
        platform: Operating system and architecture.
        device_name: What the device calls itself; None where nothing ran.
        isolation: ``layer`` on the runtime, or ``environment`` of its own.
        process: ``fork`` of a server with torch preloaded, or ``fresh`` interpreter.
        seconds: How long the cell took, wall clock.
    """

    check_revision: str
    started_at: str
    harness_commit: str | None = None
    extras: tuple[str, ...] = ()
    packages: str | None = None
    python_build: str | None = None
    platform: str | None = None
    device_name: str | None = None
    isolation: str | None = None
    process: str | None = None
    seconds: float | None = None


class Record(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one case showed in one cell (DESIGN.md, "results.json").

    Attributes:
        transformers: Version of the release, as installed (or as asked for, if it was not).
        source: Where it came from.
        ref: What was asked for, where that moves: ``main``, ``pr:123``, a branch or a path.
        commit: The commit that `ref` stood for, 40 hexadecimal digits.
        released_at: When it was uploaded to the index, ISO 8601 in UTC.
        python: Full version of the interpreter; ``3.11`` if it never started.
        torch: Version of torch with its build, ``2.13.0+cpu``.
        model: Name of the model in the catalog of `checks`.
        scenario: Way to reach the crossing.
        attention: Attention backend asked for.
        device: Device asked for.
        dtype: Data type of weights and logits.
        status: What it showed.
        defect: Cause, for an affected record.
        reason: Code of the cause, for a record that is not conclusive.
        evidence: The numbers.
        provenance: Where the record came from.
    """

    transformers: str
    source: Source
    ref: str | None
    commit: str | None
    released_at: str | None
    python: str
    torch: str
    model: str
    scenario: str
    attention: str
    device: str
    dtype: str
    status: Status
    defect: Defect | None
    reason: Reason | None
    evidence: Evidence
    provenance: Provenance

    def __post_init__(self) -> None:
        require_coherence(self.status, self.defect, self.reason)

    @property
    def case(self) -> str:
        """Name of the case: ``MODEL/SCENARIO/ATTENTION/DEVICE/DTYPE``."""
        return f"{self.model}/{self.scenario}/{self.attention}/{self.device}/{self.dtype}"

    @property
    def runtime(self) -> str:
        """Name of the runtime: ``3.11/2.13.0``, without patch of Python or build of torch."""
        return _runtime_name(self.python, self.torch, self.provenance.extras)

    @property
    def release(self) -> str:
        """Name of the release: its version, or the ref that was asked for."""
        return self.transformers if self.ref is None else self.ref


def require_coherence(status: Status, defect: Defect | None, reason: Reason | None) -> None:
    """Insist that a defect goes with `affected`, and a reason with what is not conclusive.

    Raises:
        ValueError: They do not go together.
    """
    if (defect is not None) != (status is Status.AFFECTED):
        raise ValueError(f"a `defect` goes with status affected, and no other; here {status}")
    if reason is not None and status.conclusive:
        raise ValueError(f"a `reason` goes with a status that is not conclusive; here {status}")
    if reason is None and status in (Status.UNSUPPORTED, Status.NOT_RUN, Status.ERROR):
        raise ValueError(f"status {status} needs a `reason`")


@cache
def _runtime_name(python: str, torch: str, extras: tuple[str, ...]) -> str:
    """Remembered: a report asks for the few names there are several times for each record."""
    return "+".join([f"{short_python(python)}/{short_torch(torch)}", *extras])


@cache
def short_python(version: str) -> str:
    """``3.11.7`` -> ``3.11``: patches of Python share a runtime."""
    return ".".join(version.split(".")[:2])


@cache
def short_torch(version: str) -> str:
    """``2.13.0+cpu`` -> ``2.13.0``: builds of torch share a runtime."""
    return version.partition("+")[0]


def release_order(record: Record) -> tuple[int, Version, str]:
    """Sort key that puts index releases first, by version, and moving refs behind them.

    Raises:
        packaging.version.InvalidVersion: The version of an index release is none.
    """
    if record.source is Source.INDEX:
        return (0, Version(record.transformers), "")
    return (1, Version("0"), record.release)
