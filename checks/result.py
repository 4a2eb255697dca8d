"""What one case showed, as the check hands it on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from checks.catalog import Case


@dataclass(frozen=True)
class Result:
    """The parts of a record that the check knows.

    Attributes:
        case: what was measured.
        status: one of the catalog's statuses.
        defect: the cause named for ``affected``, else None.
        reason: the reason code of a case that decides nothing, else None.
        evidence: plain JSON values, a few hundred bytes.
        seconds: wall time.
    """

    case: Case
    status: str
    defect: str | None = None
    reason: str | None = None
    evidence: Mapping[str, Any] = field(default_factory=dict)
    seconds: float = 0.0
