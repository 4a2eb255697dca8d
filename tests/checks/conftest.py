"""Tests named ``test_real_*`` need a release; where there is none, they say so, loudly."""

from __future__ import annotations

import importlib.util
import os
from typing import TYPE_CHECKING

import pytest

from tests.checks.table import TABLE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

REQUIRED = "REQUIRE_TRANSFORMERS"


def _present() -> bool:
    return all(importlib.util.find_spec(name) is not None for name in ("torch", "transformers"))


class _Absent(pytest.File):
    """Stands for a module whose tests can't be run here."""

    def collect(self) -> Iterator[pytest.Item]:
        """One item, which is skipped or fails."""
        yield _NothingToTest.from_parent(self, name="needs-torch-and-transformers")


class _NothingToTest(pytest.Item):
    def runtest(self) -> None:
        """A run that was asked for and can't be made is a failure."""
        reason = f"{self.path.name}: no torch and transformers here, nothing was tested"
        if os.environ.get(REQUIRED) == "1":
            pytest.fail(reason, pytrace=False)
        pytest.skip(reason)


def pytest_pycollect_makemodule(
    module_path: Path, parent: pytest.Collector
) -> pytest.Collector | None:
    """Put a stand-in in the place of a module that couldn't even be imported."""
    if module_path.name.startswith("test_real_") and not _present():
        return _Absent.from_parent(parent, path=module_path)
    return None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The table of what was planted and what was found."""
    if TABLE:
        terminalreporter.section("planted defects")
        for line in TABLE.lines():
            terminalreporter.write_line(line)
