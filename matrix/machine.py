"""What this machine and this checkout are: cores, memory, commit, time."""

from __future__ import annotations

import os
import re
from datetime import UTC, datetime
from pathlib import Path

from matrix.errors import RepositoryError
from matrix.git import git

MEMORY_PER_WORKER_MB = 1000
"""What to keep free for each cell at a time: a worker takes less than 700 MB."""


def workers_here(asked: int = 0) -> int:
    """How many cells to run at a time: as many as `asked`, or as cores and memory allow."""
    if asked:
        return asked
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:
        cores = os.cpu_count() or 1
    available = available_memory_mb()
    return max(1, min(cores, available // MEMORY_PER_WORKER_MB if available else cores))


def available_memory_mb() -> int | None:
    """MiB of memory that new processes may take; None where the system does not tell."""
    amounts: list[int] = []
    try:
        meminfo = Path("/proc/meminfo").read_text(encoding="ascii")
    except OSError:
        return None
    if found := re.search(r"^MemAvailable:\s+(\d+) kB", meminfo, re.MULTILINE):
        amounts.append(int(found[1]) // 1024)
    try:
        limit = Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii").strip()
        used = Path("/sys/fs/cgroup/memory.current").read_text(encoding="ascii").strip()
    except OSError:
        limit = "max"
    if limit != "max":
        amounts.append((int(limit) - int(used)) // 2**20)
    return min(amounts, default=None)


def harness_commit(root: Path) -> str | None:
    """Commit of this checkout, with ``+`` if what runs was changed since; None without git."""
    try:
        commit = git(root, "rev-parse", "HEAD")
        changed = git(root, "status", "--porcelain", "--", "checks", "matrix")
    except RepositoryError:
        return None
    return commit + ("+" if changed else "")


def now() -> str:
    """The time, ISO 8601 in UTC. The only clock of the harness."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
