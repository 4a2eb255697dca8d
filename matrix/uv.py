"""The edge to uv: runs it, tries again what the network spoilt, and says why it failed."""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from matrix.errors import DiskFullError, UvMissingError
from matrix.records import Reason

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

PAUSES = (2.0, 8.0)
"""Seconds to wait before each further try after a failure of the network."""

_CAUSES: tuple[tuple[Reason, re.Pattern[str]], ...] = (
    (
        Reason.UNREACHABLE,
        re.compile(
            r"error sending request|failed to fetch|could not connect|connection (refused|reset)"
            r"|dns error|timed out|network (is )?unreachable|unable to access|could not read from"
            r"|failed to (clone|resolve .* git)|git operation failed"
            r"|50[0234] (bad|service|gateway)",
            re.IGNORECASE,
        ),
    ),
    (
        Reason.DEPENDENCY_CONFLICT,
        re.compile(r"no solution found|unsatisfiable|no wheels? with a matching", re.IGNORECASE),
    ),
)
_DISK_FULL = re.compile(r"no space left on device|disk quota exceeded|os error 28\b", re.IGNORECASE)


class UvError(Exception):
    """uv failed.

    Attributes:
        reason: Code for the record of the cell that wanted it.
        log: End of what uv said.
    """

    def __init__(self, reason: Reason, log: str) -> None:
        super().__init__(log)
        self.reason = reason
        self.log = log


def classify(log: str) -> Reason:
    """Why uv failed, from what it said."""
    for reason, pattern in _CAUSES:
        if pattern.search(log):
            return reason
    return Reason.INSTALL_FAILED


@dataclass(frozen=True, slots=True, kw_only=True)
class Uv:
    """uv on this machine.

    Attributes:
        executable: Path of the program.
        environ: The environment to run it in, with the index settings.
        sleep: Waits between tries; passed in so that tests need not wait.
    """

    executable: str
    environ: Mapping[str, str]
    sleep: Callable[[float], None] = field(default=time.sleep)

    def run(self, *arguments: str, stdin: str | None = None, tries: int = len(PAUSES) + 1) -> str:
        """Run uv and return its standard output; at most `tries` times, if the network fails.

        Raises:
            UvError: It failed, and not for want of another try.
            UvMissingError: There is no such program.
            DiskFullError: No space is left.
        """
        for pause in (*PAUSES[: tries - 1], None):
            try:
                done = subprocess.run(
                    [self.executable, *arguments],
                    input=stdin,
                    capture_output=True,
                    text=True,
                    check=False,
                    env=dict(self.environ),
                )
            except FileNotFoundError:
                raise UvMissingError(
                    f"{self.executable} is not there.", advice='Install it: pip install "nox[uv]"'
                ) from None
            if done.returncode == 0:
                return done.stdout
            log = done.stderr.strip()
            if _DISK_FULL.search(log):
                raise DiskFullError(
                    f"No space is left for uv: {last_lines(log, 2)}",
                    advice="Free some space and run the same command again; "
                    "finished cells are kept.",
                )
            reason = classify(log)
            if reason is not Reason.UNREACHABLE or pause is None:
                raise UvError(reason, last_lines(log, 20))
            self.sleep(pause)
        raise AssertionError("the last try returns or raises")


def find_uv(environ: Mapping[str, str]) -> Uv:
    """The uv that the package of that name brings, or the one on the path.

    Raises:
        UvMissingError: Neither is there.
    """
    try:
        from uv import find_uv_bin

        executable: str | None = find_uv_bin()
    except (ImportError, FileNotFoundError):
        executable = shutil.which("uv", path=environ.get("PATH"))
    if executable is None:
        raise UvMissingError("uv is not installed.", advice='Install it: pip install "nox[uv]"')
    return Uv(executable=executable, environ=environ)


def last_lines(text: str, count: int) -> str:
    """The last `count` lines that are not empty, at most 2,000 characters of them."""
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    return "\n".join(lines[-count:])[-2000:]
