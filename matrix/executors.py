"""Two ways to run a job in a process of its own: forked with torch preloaded, or fresh.

Forking is an optimisation and must be invisible: both end in `matrix.runner.cell.run`.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from matrix.errors import RunnerError
from matrix.uv import last_lines

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matrix.runner.cell import Job

ROOT = Path(__file__).resolve().parents[1]
FORK_IS_SAFE = sys.platform.startswith("linux")
"""macOS can fork, but its system libraries do not survive it; Windows cannot."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How a process ended: ``done``, ``timeout``, ``died`` or ``failed``, and words for it."""

    ending: str
    message: str


class Executor(Protocol):
    """Runs jobs, several at a time."""

    process: str
    """``fork`` or ``fresh``, for the record."""

    def submit(self, job: Job) -> Future[Ending]:
        """Run `job` as soon as there is room for it."""

    def close(self) -> None:
        """Stop everything that still runs."""


class FreshExecutor:
    """Starts an interpreter for each job."""

    process = "fresh"

    def __init__(
        self, executable: Path, environ: Mapping[str, str], *, workers: int, seconds: float
    ) -> None:
        self._executable = executable
        self._environ = dict(environ)
        self._seconds = seconds
        self._pool = ThreadPoolExecutor(max_workers=workers, thread_name_prefix="fresh")
        self._running: set[subprocess.Popen[bytes]] = set()
        self._closed = False

    def submit(self, job: Job) -> Future[Ending]:
        """Run `job` as soon as there is room for it."""
        return self._pool.submit(self._run, job)

    def close(self) -> None:
        """Stop everything that still runs."""
        self._closed = True
        self._pool.shutdown(wait=False, cancel_futures=True)
        for process in tuple(self._running):
            _kill(process)

    def _run(self, job: Job) -> Ending:
        self._refuse_if_closed()
        description = Path(job.out).with_suffix(".job.json")
        description.write_text(job.to_json(), encoding="utf-8")
        with Path(job.log).open("ab") as log:
            process = subprocess.Popen(
                [self._executable, "-s", "-m", "matrix.runner.cell", str(description)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=ROOT,
                env=self._environ,
                start_new_session=True,
            )
        self._running.add(process)
        try:
            code = process.wait(timeout=self._seconds)
        except subprocess.TimeoutExpired:
            _kill(process)
            return Ending(ending="timeout", message=f"stopped after {self._seconds:.0f} s")
        finally:
            self._running.discard(process)
        self._refuse_if_closed()
        if code == 0:
            return Ending(ending="done", message="")
        # A Python error ends with 1; anything else is an exit or a signal of the release's.
        return Ending(ending="failed" if code == 1 else "died", message=f"exit code {code}")

    def _refuse_if_closed(self) -> None:
        """Keep a cell that was stopped with the harness from looking like one that crashed."""
        if self._closed:
            raise RunnerError("The run was stopped.", advice="Run the same command again.")


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a process that began a session, and all that it has started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=10)


class ForkExecutor:
    """Sends jobs to a server on the runtime's Python, which forks a process for each."""

    process = "fork"

    def __init__(
        self,
        executable: Path,
        environ: Mapping[str, str],
        *,
        workers: int,
        seconds: float,
        log: Path,
    ) -> None:
        self._log = log
        self._futures: dict[str, Future[Ending]] = {}
        self._lock = threading.Lock()
        with log.open("ab") as stderr:
            self._server = subprocess.Popen(
                [
                    *(str(executable), "-s", "-m", "matrix.runner"),
                    *("--workers", str(workers), "--seconds", str(seconds)),
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
                encoding="utf-8",
                cwd=ROOT,
                env=dict(environ),
                start_new_session=True,
            )
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def submit(self, job: Job) -> Future[Ending]:
        """Run `job` as soon as there is room for it."""
        future: Future[Ending] = Future()
        with self._lock:
            self._futures[job.cell] = future
            try:
                assert self._server.stdin is not None
                self._server.stdin.write(job.to_json() + "\n")
                self._server.stdin.flush()
            except OSError:
                self._futures.pop(job.cell)
                future.set_exception(self._gone())
        return future

    def close(self) -> None:
        """Stop everything that still runs."""
        # The server stops its cells when its input closes.
        with contextlib.suppress(OSError):
            assert self._server.stdin is not None
            self._server.stdin.close()
        try:
            self._server.wait(timeout=10)
        except subprocess.TimeoutExpired:
            pass
        finally:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._server.pid, signal.SIGKILL)
            self._server.wait()

    def _listen(self) -> None:
        assert self._server.stdout is not None
        for line in self._server.stdout:
            try:
                message = json.loads(line)
                future = self._futures.pop(message["cell"])
            except (ValueError, KeyError, TypeError):
                continue  # something that was printed, no message of the server
            future.set_result(Ending(ending=message["ending"], message=message["message"]))
        with self._lock:
            left, self._futures = list(self._futures.values()), {}
        for future in left:
            future.set_exception(self._gone())

    def _gone(self) -> RunnerError:
        log = self._log.read_text(encoding="utf-8", errors="replace")
        return RunnerError(
            f"The process that forks cells is gone:\n{last_lines(log, 5)}",
            advice="Run the same command again; finished cells are kept. If it happens again, "
            "`--isolated` does without that process.",
        )
