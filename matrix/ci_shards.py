"""What the jobs of a CI run brought back: which of it to believe, and what is missing. Pure.

A job runs the code of the packages under test, so what it hands over is a claim. Only the
records that it was asked for are taken: a release cannot speak for another one.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from matrix.options import parse_shard
from matrix.plan import shard

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from matrix.ci_jobs import Job
    from matrix.plan import Plan, PlannedCell
    from matrix.records import Record

_LOCK_KEY = re.compile(r"[0-9a-f]{12}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrived:
    """What is taken of the jobs' records.

    Attributes:
        records: The records to keep.
        trouble: What is missing or was left out, a sentence each.
    """

    records: tuple[Record, ...]
    trouble: tuple[str, ...]


def accept(
    plans: Mapping[str, Plan], jobs: Sequence[Job], brought: Mapping[str, Sequence[Record]]
) -> Arrived:
    """Take the records that each job was asked for, and say what did not come.

    Args:
        plans: The plan for the machines of each device.
        jobs: The jobs that were started.
        brought: Id of a job -> the records that it handed over; a job that handed over
            nothing has no entry.
    """
    records: list[Record] = []
    trouble: list[str] = []
    for job in jobs:
        name = f"Job {job.id} ({job.runtime}, shard {job.shard}, {job.cells} cells)"
        if job.id not in brought:
            trouble.append(f"{name} did not deliver.")
            continue
        cells = cells_of(plans[job.device], job)
        asked = {
            (cell.release.name, cell.release.commit, cell.runtime, case)
            for cell in cells
            for case in cell.cases
        }
        mine = [record for record in brought[job.id] if _key(record) in asked and _sound(record)]
        records += mine
        if strange := len(brought[job.id]) - len(mine):
            trouble.append(f"{name} brought {strange} records that it was not asked for.")
        if missing := _unfinished(cells, mine):
            trouble.append(f"{name} left cells unfinished: {', '.join(missing)}.")
    return Arrived(records=tuple(records), trouble=tuple(trouble))


def cells_of(plan: Plan, job: Job) -> tuple[PlannedCell, ...]:
    """The cells that a job runs, as ``python -m matrix cells --shard`` chooses them."""
    return shard(plan.cells_of(job.runtime), *parse_shard(job.shard))


def _key(record: Record) -> tuple[str, str | None, str, str]:
    return record.release, record.commit, record.runtime, record.case


def _sound(record: Record) -> bool:
    """Whether what names a file in this record is no path."""
    key = record.provenance.packages
    return key is None or _LOCK_KEY.fullmatch(key) is not None


def _unfinished(cells: Iterable[PlannedCell], records: Iterable[Record]) -> list[str]:
    found: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for record in records:
        found[record.release, record.runtime].add(record.case)
    return [
        cell.name
        for cell in cells
        if not found[cell.release.name, cell.runtime].issuperset(cell.cases)
    ]
