"""How long a case may take."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from checks.catalog import Case
from checks.errors import CaseTimeout
from checks.result import Result


def measure_within(case: Case, seconds: float) -> Result:
    """Measure *case*, or give it up."""
    from checks.measure import measure

    try:
        with time_limit(seconds):
            return measure(case)
    except CaseTimeout:
        message = f"gave up after {seconds:g} s"
        return Result(case, "error", None, "timeout", {"message": message}, seconds)


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise :class:`CaseTimeout` after *seconds*, where the platform can.

    It interrupts Python, not a loop inside a library: against that the harness has its own limit
    on the process.
    """
    usable = hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread()
    if not usable:
        yield
        return

    def ring(*_: Any) -> None:
        raise CaseTimeout

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
