"""Everything that can stop the harness, each with its own exit code and what to do next.

A cell that is affected, does not install or crashes is no error of the harness: that is a
record. These are for when the harness cannot do its work at all.
"""

from __future__ import annotations

from typing import ClassVar


class HarnessError(Exception):
    """Base of all: a message for the user, a way on, and an exit code.

    Attributes:
        message: What went wrong, and where.
        advice: What the user can do about it.
    """

    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, *, advice: str) -> None:
        super().__init__(message)
        self.message = message
        self.advice = advice

    def __str__(self) -> str:
        return f"{self.message}\n{self.advice}"


class OptionsError(HarnessError):
    """Words on the command line that mean nothing."""

    exit_code = 2


class GridError(HarnessError):
    """Mistakes in grid.toml."""

    exit_code = 3


class NoSuchReleaseError(HarnessError):
    """A release that was named does not exist."""

    exit_code = 4


class IndexUnreachableError(HarnessError):
    """The package index did not answer."""

    exit_code = 5


class UvMissingError(HarnessError):
    """There is no uv on this machine."""

    exit_code = 6


class PythonMissingError(HarnessError):
    """There is no such Python, and uv could not fetch it."""

    exit_code = 7


class RuntimeInstallError(HarnessError):
    """A runtime could not be installed."""

    exit_code = 8


class DiskFullError(HarnessError):
    """No space is left where the harness works."""

    exit_code = 9


class CorruptFileError(HarnessError):
    """A file of the harness cannot be read back."""

    exit_code = 10


class RunnerError(HarnessError):
    """The process that runs cells died itself."""

    exit_code = 11


class RepositoryError(HarnessError):
    """A git repository or one of its refs cannot be used."""

    exit_code = 12


INTERRUPTED = 130
"""Exit code after Ctrl-C, as a shell gives it."""
