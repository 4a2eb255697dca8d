"""Fixtures that several kinds of tests share."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest

from tests.fixture_index import OUTCOMES, serving, write_index

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def pytest_configure() -> None:
    """Where Ctrl-C is ignored, as in the background of a shell, what is started ignores it too."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def runtimes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder whose runtimes all tests of the session share: torch is large."""
    return tmp_path_factory.mktemp("shared")


@pytest.fixture(scope="session")
def fixture_index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of an index on the loopback interface with a release for each outcome."""
    folder = tmp_path_factory.mktemp("index")
    write_index(folder, OUTCOMES)
    with serving(folder) as address:
        yield address
