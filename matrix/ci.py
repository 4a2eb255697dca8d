"""The commands of the scheduled run, around those of `matrix`: see .github/workflows/matrix.yml.

======================================  ====================================================
``python -m matrix.ci plan``            plan what the environment asks for, and cut it in jobs
``python -m matrix.ci gather``          take what the jobs brought, and say what is missing
======================================  ====================================================

What somebody typed into a form reaches `plan` through the environment (`RELEASES`,
`SCENARIOS`, `RUNTIMES`), and no shell ever reads it.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

import matrix.__main__ as commands
from checks.revision import check_revision
from matrix.ci_jobs import SECONDS_PER_JOB, Job, describe_jobs, make_jobs, plans_by_device
from matrix.ci_shards import accept
from matrix.errors import CorruptFileError, HarnessError, OptionsError
from matrix.ledger import Ledger, write_atomically
from matrix.plan import read_plan
from matrix.specs import GitRef, LocalPath, parse_specs
from matrix.work import ROOT, committed_ledger

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matrix.plan import Plan
    from matrix.records import Record

SHIPPED = ROOT / "reports" / "ledger"
"""The ledger of this checkout; a run that keeps its own elsewhere starts from it."""

INPUTS = {"RELEASES": "--releases", "SCENARIOS": "--scenarios", "RUNTIMES": "--runtimes"}
"""Variable of the environment -> the option that it stands for; blanks part the words."""


def main(arguments: Sequence[str]) -> int:
    """Run one command; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m matrix.ci", description=__doc__)
    parser.add_argument("command", choices=("plan", "gather"))
    parser.add_argument(
        "--plan", type=Path, default=Path("plan"), metavar="DIR", help="folder of the plan"
    )
    parser.add_argument(
        "--shards", type=Path, default=Path("shards"), metavar="DIR", help="what the jobs brought"
    )
    parser.add_argument(
        "--outcome", type=Path, default=Path("outcome"), metavar="DIR", help="for the jobs behind"
    )
    parser.add_argument(
        "--untrusted", action="store_true", help="plan pull requests, repositories and paths too"
    )
    options = parser.parse_args(arguments)
    try:
        if options.command == "plan":
            return plan_command(options.plan, os.environ, untrusted=options.untrusted)
        gather_command(options.plan, options.shards, options.outcome)
    except HarnessError as error:
        print(f"matrix.ci: {error.message}\n  → {error.advice}", file=sys.stderr)
        return error.exit_code
    return 0


def plan_command(folder: Path, environ: Mapping[str, str], *, untrusted: bool) -> int:
    """Write the plan, one for the machines of each device, and the jobs; returns an exit code.

    Raises:
        OptionsError: Something is asked for that a run with a memory must not run.
    """
    arguments = inputs(environ, untrusted=untrusted)
    adopt()
    code = commands.main(["plan", "--plan", str(folder / "plan.json"), *arguments])
    if code:
        return code
    plan = read_plan(folder / "plan.json")
    plans = plans_by_device(plan)
    jobs = make_jobs(plans, seconds_per_job=_seconds_per_job(environ))
    for device, part in plans.items():
        write_json(folder / f"{device}.json", part)
    write_json(folder / "jobs.json", jobs)
    append(environ, "GITHUB_STEP_SUMMARY", describe_jobs(plan, jobs) + _problems(plan))
    for problem in plan.problems:
        print(f"::warning::{_one_line(problem)}")
    listed = msgspec.json.encode(jobs).decode()
    work = str(bool(jobs or plan.problems)).lower()
    append(environ, "GITHUB_OUTPUT", f"jobs={listed}\nwork={work}\n")
    return 0


def inputs(environ: Mapping[str, str], *, untrusted: bool) -> list[str]:
    """The options that the environment asks for.

    Raises:
        OptionsError: It asks for code that anybody may have written, and `untrusted` is not set.
    """
    arguments: list[str] = []
    for variable, option in INPUTS.items():
        if words := environ.get(variable, "").split():
            arguments += [option, *words]
    specs, _ = parse_specs(environ.get("RELEASES", "").split())
    if not untrusted:
        for spec in specs:
            if isinstance(spec, LocalPath) or (isinstance(spec, GitRef) and spec.name != "main"):
                raise OptionsError(
                    "Pull requests, other repositories and paths are not run here: what they "
                    "hold would be kept, and published.",
                    advice="Run the workflow `try`, which keeps nothing.",
                )
    return arguments


def _seconds_per_job(environ: Mapping[str, str]) -> float:
    text = environ.get("SECONDS_PER_JOB", "")
    try:
        seconds = float(text) if text else SECONDS_PER_JOB
    except ValueError:
        seconds = 0.0
    if not seconds > 0:
        raise OptionsError(
            f"SECONDS_PER_JOB is {text!r}, and should be a number of seconds.",
            advice="Correct the variable of that name, or delete it.",
        )
    return seconds


def adopt() -> None:
    """Bring what this checkout ships into a ledger that is kept elsewhere (`MATRIX_LEDGER`).

    What is known there stays, unless only the shipped record is of the checks of this checkout.
    """
    kept, shipped = committed_ledger(), Ledger(SHIPPED.resolve())
    if kept.root == shipped.root:
        return
    revision = check_revision()
    ours, _ = kept.load()
    known = {_key(record): record.provenance.check_revision == revision for record in ours}
    theirs, _ = shipped.load()
    store(
        [
            record
            for record in theirs
            if not known.get(_key(record), False)
            and (_key(record) not in known or record.provenance.check_revision == revision)
        ],
        (shipped,),
        kept,
    )


def _key(record: Record) -> tuple[str, str | None, str, str]:
    return record.release, record.commit, record.runtime, record.case


def store(records: Sequence[Record], sources: Sequence[Ledger], ledger: Ledger) -> tuple[str, ...]:
    """Put records, and the locks that they name, into a ledger; returns where it disagrees."""
    keys = {record.provenance.packages for record in records}
    for key in sorted(key for key in keys if key):
        packages = next((lock for source in sources if (lock := source.lock(key))), None)
        if packages:
            ledger.add_lock(packages)
    return tuple(str(one) for one in ledger.add(records, replace=False))


def gather_command(folder: Path, shards: Path, outcome: Path) -> None:
    """Take the jobs' records into the ledger; what is missing goes to the summary and the gate.

    Each job's ledger is the folder `shard-ID` of `shards`.

    Raises:
        CorruptFileError: The plan or the list of jobs cannot be read.
    """
    plan = read_plan(folder / "plan.json")
    jobs = read_jobs(folder / "jobs.json")
    plans = {job.device: read_plan(folder / f"{job.device}.json") for job in jobs}
    places = {job.id: shards / f"shard-{job.id}" for job in jobs}
    ledgers = {job: Ledger(place) for job, place in places.items() if place.is_dir()}
    brought: dict[str, Sequence[Record]] = {}
    trouble: list[str] = list(plan.problems)
    for job, ledger in ledgers.items():
        brought[job], damaged = ledger.load()
        trouble += [f"Job {job} brought a damaged file: {one.path.name}." for one in damaged]
    adopt()
    arrived = accept(plans, jobs, brought)
    differences = store(arrived.records, tuple(ledgers.values()), committed_ledger())
    trouble += arrived.trouble
    write_json(outcome / "trouble.json", trouble)
    write_json(outcome / "differences.json", differences)
    print(f"{len(ledgers)} of {len(jobs)} jobs delivered, {len(arrived.records)} records")
    for line in trouble:
        print(f"::error::{_one_line(line)}")
    for line in differences:
        print(f"::warning::A difference: {_one_line(line)}")


def read_jobs(path: Path) -> tuple[Job, ...]:
    """Read the list of jobs back.

    Raises:
        CorruptFileError: There is none, or it is not as `plan` wrote it.
    """
    try:
        return msgspec.json.decode(path.read_bytes(), type=tuple[Job, ...])
    except (OSError, msgspec.MsgspecError) as error:
        raise CorruptFileError(
            f"The jobs {path} cannot be read: {error}",
            advice="Make them again: python -m matrix.ci plan",
        ) from error


def write_json(path: Path, value: object) -> None:
    """Write a file for the jobs that follow."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n")


def append(environ: Mapping[str, str], variable: str, text: str) -> None:
    """Add to the file that the platform named in a variable, or print where there is none."""
    if path := environ.get(variable):
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(text)
    else:
        print(text, end="")


def _problems(plan: Plan) -> str:
    """What could not be reached, as blocks of code: nothing in them means anything."""
    return "".join(f"\n    {_one_line(problem)}\n" for problem in plan.problems)


def _one_line(text: str) -> str:
    """For an annotation: a line feed in it would begin a command of its own."""
    return " ".join(text.split())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
