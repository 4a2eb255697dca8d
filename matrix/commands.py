"""What the commands do: plan, run cells, gather. `matrix.__main__` dispatches to them."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec

from checks.revision import check_revision
from matrix.canary import again_ledger, choose_again, disagreements
from matrix.cells import Bench, CellRunner
from matrix.devices import present_devices
from matrix.errors import OptionsError
from matrix.git import resolve_ref
from matrix.grid import load_grid
from matrix.index_settings import settings_here
from matrix.layers import Layers
from matrix.ledger import Ledger, release_key, write_atomically
from matrix.machine import harness_commit, now, workers_here
from matrix.plan import Plan, PlannedCell, read_plan, shard
from matrix.resolve import World, make_plan, refine_plan
from matrix.runtimes import prepare_runtime
from matrix.uv import find_uv
from matrix.work import ROOT, Work, committed_ledger, grid_file, work_folder

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from matrix.grid import Runtime
    from matrix.options import Options
    from matrix.progress import Reporter
    from matrix.records import Record


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
    world = world_here(ROOT)
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


def world_here(base: Path) -> World:
    """The index, the repositories, the devices and the clock; relative paths start at `base`."""
    # Slow to import, and `cells` looks up nothing.
    from matrix.index import places, published

    where = places({**os.environ, **settings_here()})
    return World(
        published=lambda project: published(project, where),
        resolve_ref=resolve_ref,
        devices=present_devices(),
        now=now,
        base=base,
    )


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
            if packages := other.lock(key):
                ledger.add_lock(packages)
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
    _, ledger = ledgers(work, options)
    todo = plan.cells_of(runtime.name)
    if options.shard:
        todo = shard(todo, *options.shard)
    refine = plan.refine and options.shard is None
    tried: set[str] = set()
    if not todo and refine:
        todo = refine_plan(plan, known_records(work, reporter), runtime.name, tried)
    again: tuple[PlannedCell, ...] = ()
    if options.shard is None:
        again = cells_again(plan, runtime.name, work)
    if not todo and not again:
        reporter.say(f"{runtime.name}: nothing to run")
        return
    locks = recorded_locks(work, runtime.name, reporter) if options.locked else {}
    bench = prepare_bench(plan, runtime, options, ledger, locks, work, reporter)
    if todo:
        run_and_refine(bench, plan, todo, tried if refine else None, work, reporter)
    if again:
        run_again(bench, again, work, reporter)
    for name, seconds in reporter.phases.items():
        reporter.say(f"  {seconds:6.1f} s  {name}")


def recorded_locks(work: Work, runtime: str, reporter: Reporter) -> dict[str, dict[str, str]]:
    """Release key -> the packages that the records of `runtime` were made with."""
    locks: dict[str, dict[str, str]] = {}
    for record in known_records(work, reporter):
        key = record.provenance.packages
        if record.runtime != runtime or key is None:
            continue
        for ledger in (committed_ledger(), work.ledger):
            packages = ledger.lock(key)
            if packages is not None:
                locks[release_key(record)] = packages
    return locks


def prepare_bench(
    plan: Plan,
    runtime: Runtime,
    options: Options,
    ledger: Ledger,
    locks: Mapping[str, Mapping[str, str]],
    work: Work,
    reporter: Reporter,
) -> Bench:
    """Install the runtime, and say where and how its cells run."""
    uv = find_uv({**os.environ, **settings_here()})
    with reporter.phase(f"preparing runtime {runtime.name}"):
        environment = prepare_runtime(runtime, uv, work.runtimes)
    return Bench(
        runtime=runtime,
        environment=environment,
        installer=Layers(
            package=plan.package,
            runtime=environment,
            extras=runtime.extras,
            uv=uv,
            folder=work.layers(runtime.name),
            locks=locks,
        ),
        folder=work.run_folder(runtime.name),
        ledger=ledger,
        limits=plan.limits,
        workers=workers_here(plan.limits.workers),
        isolated=options.isolated,
        check_revision=plan.check_revision,
        harness_commit=harness_commit(ROOT),
        now=now,
        places=work.places,
        bytecode=work.bytecode,
    )


def run_and_refine(
    bench: Bench,
    plan: Plan,
    cells: tuple[PlannedCell, ...],
    tried: set[str] | None,
    work: Work,
    reporter: Reporter,
) -> None:
    """Run `cells`, and then, unless `tried` is None, what the boundaries ask for."""
    with CellRunner(bench, reporter) as runner, reporter.cells(len(cells)):
        phase = f"checking {len(cells)} cells, {bench.workers} at a time"
        while cells:
            with reporter.phase(phase):
                runner.run(cells)
            if tried is None:
                return
            tried |= {cell.release.version for cell in cells}
            cells = refine_plan(plan, known_records(work, reporter), bench.runtime.name, tried)
            reporter.more(len(cells))
            phase = f"refining boundaries: {len(cells)} cells more"


def cells_again(plan: Plan, runtime: str, work: Work) -> tuple[PlannedCell, ...]:
    """Recorded cells to measure again, if this is the first run of these checks here."""
    done, _ = again_ledger(work.root).load()
    if any(
        r.runtime == runtime and r.provenance.check_revision == plan.check_revision for r in done
    ):
        return ()
    recorded, _ = committed_ledger().load()
    return choose_again(plan, recorded, runtime)


def run_again(bench: Bench, cells: tuple[PlannedCell, ...], work: Work, reporter: Reporter) -> None:
    """Measure recorded cells again, beside the ledger, and say whether they came out the same."""
    ledger = again_ledger(work.root)
    with (
        reporter.phase(f"measuring {len(cells)} recorded cells again on this machine"),
        CellRunner(replace(bench, ledger=ledger), reporter) as runner,
        reporter.cells(len(cells)),
    ):
        runner.run(cells)
    recorded, _ = committed_ledger().load()
    measured, _ = ledger.load()
    differences = disagreements(recorded, measured)
    for difference in differences:
        reporter.say(f"  a difference: {difference}")
    if not differences:
        reporter.say("  they came out the same here")
