"""The commands behind the nox sessions.

===================================  =====================================================
``python -m matrix plan``            resolve the grid, minus what the ledger knows
``python -m matrix cells RUNTIME``   run the plan's cells on one runtime, or a shard of them
``python -m matrix gather DIR …``    put records that were made elsewhere into the ledger
===================================  =====================================================

Every way to stop has an exit code of its own (see `matrix.errors`); a cell that is affected
or broken is a record and stops nothing.
"""

from __future__ import annotations

import os
import sys
from itertools import takewhile
from pathlib import Path
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
from matrix.ledger import Ledger, write_atomically
from matrix.machine import harness_commit, now, workers_here
from matrix.options import Options, parse_options
from matrix.plan import Plan, read_plan, shard
from matrix.progress import Reporter
from matrix.resolve import World, make_plan, refine_plan
from matrix.runtimes import prepare_runtime
from matrix.uv import find_uv
from matrix.work import ROOT, Work, committed_ledger, grid_file, work_folder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matrix.records import Record

COMMANDS = ("plan", "cells", "gather")


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
        elif command == "gather":
            folders = [Path(word) for word in takewhile(lambda word: word[:2] != "--", rest)]
            options = parse_options(rest[len(folders) :], prog="python -m matrix gather DIR …")
            gather_command(folders, options, reporter)
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
    committed = committed_ledger()
    return committed, committed if options.record else work.ledger


def known_records(work: Work, reporter: Reporter) -> tuple[Record, ...]:
    """Records of both ledgers; damaged files are named and passed over."""
    records: list[Record] = []
    for ledger in (committed_ledger(), work.ledger):
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
            load_grid(grid_file()), options, world, known_records(work, reporter), check_revision()
        )
    work.forget_old_runs()
    path = options.plan or work.plan
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, msgspec.json.format(msgspec.json.encode(plan), indent=2))
    if options.json:
        print(path.read_text(encoding="utf-8"))
    describe_plan(plan, reporter)


def gather_command(folders: Sequence[Path], options: Options, reporter: Reporter) -> None:
    """Put the records of other ledgers into ours, whatever their order; twice does no harm.

    Raises:
        OptionsError: A folder is not there.
    """
    missing = [str(folder) for folder in folders if not folder.is_dir()]
    if missing or not folders:
        raise OptionsError(
            f"gather: no such folder: {', '.join(missing) or 'none was named'}.",
            advice="Name the folders that shards wrote, each a ledger (.matrix/ledger).",
        )
    _, ledger = ledgers(work_folder(), options)
    for folder in folders:
        other = Ledger(folder)
        records, damaged = other.load()
        for one in damaged:
            reporter.say(f"matrix: a damaged file is passed over: {one}")
        for key in sorted({r.provenance.packages for r in records if r.provenance.packages}):
            if text := other.lock(key):
                ledger.add_lock(dict(line.split("==", 1) for line in text.split()))
        differences = ledger.add(records, replace=False)
        for difference in differences:
            reporter.say(f"matrix: a difference: {difference}")
        reporter.say(f"{folder}: {len(records)} records")


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
    plan = read_plan(options.plan or work.plan)
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
