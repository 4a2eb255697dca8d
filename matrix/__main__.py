"""The commands behind the nox sessions: ``python -m matrix plan`` and ``python -m matrix cells``.

Every way to stop has an exit code of its own (see `matrix.errors`); a cell that is affected
or broken is a record and stops nothing.
"""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING

import msgspec

from checks.revision import check_revision
from matrix.cells import Bench, CellRunner
from matrix.devices import present_devices
from matrix.errors import INTERRUPTED, HarnessError, OptionsError
from matrix.git import resolve_ref
from matrix.grid import load_grid
from matrix.index import places, published
from matrix.index_settings import settings_here
from matrix.ledger import COMMITTED_LEDGER, Ledger, write_atomically
from matrix.machine import harness_commit, now, workers_here
from matrix.options import Options, parse_options
from matrix.plan import Plan, read_plan, shard
from matrix.progress import Reporter
from matrix.resolve import World, make_plan, refine_plan
from matrix.runtimes import prepare_runtime
from matrix.uv import find_uv
from matrix.work import ROOT, Work, work_folder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matrix.records import Record

COMMANDS = ("plan", "cells")


def main(arguments: Sequence[str]) -> int:
    """Run one command; returns the exit code."""
    reporter = Reporter()
    try:
        command, *rest = arguments or ("--help",)
        if command not in COMMANDS:
            print(f"usage: python -m matrix {{{','.join(COMMANDS)}}} [options]\n\n{__doc__}")
            return 0 if command in ("--help", "-h") else OptionsError.exit_code
        if command == "plan":
            plan_command(parse_options(rest, prog="python -m matrix plan"), reporter)
        else:
            runtime, *rest = rest or ("",)
            options = parse_options(rest, prog=f"python -m matrix cells {runtime}")
            cells_command(runtime, options, reporter)
    except HarnessError as error:
        reporter.say(f"\nmatrix: {error.message}\n  → {error.advice}")
        return error.exit_code
    except KeyboardInterrupt:
        reporter.say(
            "\nmatrix: stopped. What was finished is kept; the same command goes on from there."
        )
        return INTERRUPTED
    return 0


def ledgers(work: Work, options: Options) -> tuple[Ledger, Ledger]:
    """The committed ledger, and the one that this run writes to."""
    committed = Ledger(COMMITTED_LEDGER)
    return committed, committed if options.record else work.ledger


def known_records(work: Work, reporter: Reporter) -> tuple[Record, ...]:
    """Records of both ledgers; damaged files are named and passed over."""
    records: list[Record] = []
    for ledger in (Ledger(COMMITTED_LEDGER), work.ledger):
        found, damaged = ledger.load()
        records += found
        for one in damaged:
            reporter.say(f"matrix: a damaged file is passed over: {one}")
    return tuple(records)


def plan_command(options: Options, reporter: Reporter) -> None:
    """Make the plan and keep it for the sessions that follow."""
    work = work_folder()
    environ = {**os.environ, **settings_here()}
    where = places(environ)
    world = World(
        published=lambda project: published(project, where),
        resolve_ref=resolve_ref,
        devices=present_devices(),
        now=now,
        base=ROOT,
    )
    with reporter.phase("resolving releases"):
        plan = make_plan(
            load_grid(), options, world, known_records(work, reporter), check_revision()
        )
    work.plan.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(work.plan, msgspec.json.format(msgspec.json.encode(plan), indent=2))
    if options.json:
        print(json.dumps([{"cell": cell.name, "cases": len(cell.cases)} for cell in plan.cells]))
    describe_plan(plan, reporter)


def describe_plan(plan: Plan, reporter: Reporter) -> None:
    """Say what will be run."""
    for problem in plan.problems:
        reporter.say(f"  {problem}")
    for runtime in plan.runtimes:
        cells = plan.cells_of(runtime.name)
        cases = sum(len(cell.cases) for cell in cells)
        reporter.say(f"  {runtime.name}: {len(cells)} cells to run, {cases} cases")
    reporter.say(f"  known already: {plan.known} cells")


def cells_command(runtime_name: str, options: Options, reporter: Reporter) -> None:
    """Run the plan's cells on one runtime, and those that its boundaries ask for."""
    work = work_folder()
    plan = read_plan(work.plan)
    runtime = plan.runtime(runtime_name)
    if runtime is None:
        reporter.say(f"{runtime_name}: not chosen for this run")
        return
    runtime_name = runtime.name
    _, ledger = ledgers(work, options)
    todo = plan.cells_of(runtime_name)
    if options.shard:
        todo = shard(todo, *options.shard)
    refine = plan.refine and options.shard is None
    tried: set[str] = set()
    if not todo and refine:
        todo = refine_plan(plan, known_records(work, reporter), runtime_name, tried)
    if not todo:
        reporter.say(f"{runtime_name}: nothing to run")
        return
    environ = {**os.environ, **settings_here()}
    uv = find_uv(environ)
    with reporter.phase(f"preparing runtime {runtime_name}"):
        environment = prepare_runtime(runtime, uv, work.runtimes)
    bench = Bench(
        package=plan.package,
        runtime=runtime,
        environment=environment,
        uv=uv,
        layers=work.layers(runtime_name),
        folder=work.run_folder(runtime_name),
        ledger=ledger,
        limits=plan.limits,
        workers=workers_here(plan.limits.workers),
        isolated=options.isolated,
        check_revision=plan.check_revision,
        harness_commit=harness_commit(ROOT),
        now=now,
    )
    with CellRunner(bench, reporter) as runner, reporter.cells(len(todo)):
        phase = f"checking {len(todo)} cells, {bench.workers} at a time"
        while todo:
            with reporter.phase(phase):
                runner.run(todo)
            tried |= {cell.release.version for cell in todo}
            if not refine:
                break
            todo = refine_plan(plan, known_records(work, reporter), runtime_name, tried)
            reporter.more(len(todo))
            phase = f"refining boundaries: {len(todo)} cells more"
    for name, seconds in reporter.phases.items():
        reporter.say(f"  {seconds:6.1f} s  {name}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
