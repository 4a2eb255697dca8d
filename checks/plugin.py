"""The pytest plugin: a test for each case, and the lines of the protocol as things happen.

Every case is one test whose id is the case's. Measuring happens in a fixture, so that a check
that fails to measure is an *error*, and a release that fails the check is a *failure*.
"""

from __future__ import annotations

import gc
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pytest

from checks.catalog import Case, select_cases
from checks.environment import describe_environment, import_transformers
from checks.limits import measure_within
from checks.result import Result

DEFAULT_LIMIT = 300.0
"""Seconds after which a single case is given up."""


class Protocol:
    """Writes JSON lines, each flushed at once, so that a killed process has told what it knew."""

    def __init__(self, path: Path | None) -> None:
        self._file: IO[str] | None = None
        if path is not None:
            self._file = path.open("w", encoding="utf-8", newline="\n")

    def write(self, kind: str, **fields: Any) -> None:
        """One line of *kind*."""
        if self._file is not None:
            self._file.write(json.dumps({"kind": kind, **fields}, allow_nan=False) + "\n")
            self._file.flush()

    def close(self) -> None:
        """No more lines."""
        if self._file is not None:
            self._file.close()


class MatrixPlugin:
    """Measures the cases of one session and keeps their results.

    Attributes:
        results: of the cases measured so far, in order.
        import_failure: why none could be, or None.
    """

    def __init__(
        self,
        cases: tuple[Case, ...] | None = None,
        out: Path | None = None,
        limit: float = DEFAULT_LIMIT,
    ) -> None:
        self._cases = cases
        self._protocol = Protocol(out)
        self._limit = limit
        self.results: list[Result] = []
        self.import_failure: Any = None

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Import the release once, and say what it is."""
        if session.config.option.collectonly:
            return
        self.import_failure = import_transformers()
        if self.import_failure is not None:
            self._protocol.write(
                "import_failed",
                reason=self.import_failure.reason,
                message=self.import_failure.message,
                traceback=self.import_failure.traceback,
            )
            raise pytest.UsageError(f"{self.import_failure.reason}: {self.import_failure.message}")
        self._protocol.write("environment", **describe_environment())
        gc.freeze()

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """One test for each case."""
        if "result" in metafunc.fixturenames:
            cases = select_cases() if self._cases is None else self._cases
            metafunc.parametrize("result", cases, ids=[case.id for case in cases], indirect=True)

    @pytest.fixture
    def result(self, request: pytest.FixtureRequest) -> Result:
        """What the case showed."""
        case: Case = request.param
        self._protocol.write("start", case=case.id)
        with imports_set_aside():
            result = measure_within(case, self._limit)
        self.results.append(result)
        self._protocol.write(
            "result",
            case=case.id,
            status=result.status,
            defect=result.defect,
            reason=result.reason,
            evidence=dict(result.evidence),
            seconds=result.seconds,
        )
        if result.status == "error":
            raise RuntimeError(f"{result.reason}: {result.evidence.get('message')}")
        return result

    def pytest_sessionfinish(self) -> None:
        """Close the protocol."""
        self._protocol.close()


@contextmanager
def imports_set_aside() -> Iterator[None]:
    """Spare the garbage collector what was imported meanwhile, which stays for good.

    With torch and a release in memory each full collection takes a tenth of a second, and some
    of what is measured asks for several.
    """
    before = len(sys.modules)
    try:
        yield
    finally:
        if len(sys.modules) > before:
            gc.collect()
            gc.freeze()
