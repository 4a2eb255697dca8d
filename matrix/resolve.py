"""From the grid and the options to a plan: asks the index, the repositories and the ledgers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from packaging.version import InvalidVersion, Version

from matrix.errors import OptionsError
from matrix.grid import Grid, Runtime, Selection
from matrix.history import histories, split_by_revision
from matrix.plan import Known, Plan, PlannedCell, plan_cells, split_cases
from matrix.refine import next_releases
from matrix.releases import Release, Resolver, as_release

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from matrix.index import Published
    from matrix.options import Options
    from matrix.records import Record


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """Everything outside that a plan depends on, passed in.

    Attributes:
        published: Gives every version of a project on the index.
        resolve_ref: Gives the commit of (url, ref).
        devices: Devices of this machine.
        now: The clock.
        base: Folder that relative paths start from.
    """

    published: Callable[[str], Sequence[Published]]
    resolve_ref: Callable[[str, str], str | None]
    devices: tuple[str, ...]
    now: Callable[[], str]
    base: Path


def make_plan(
    grid: Grid,
    options: Options,
    world: World,
    records: Iterable[Record],
    check_revision: str,
) -> Plan:
    """The plan for what the options ask for, and the grid where they are silent.

    Raises:
        NoSuchReleaseError: A spec stands for nothing.
        IndexUnreachableError: The index did not answer.
        OptionsError: A runtime is none.
    """
    resolver = Resolver(
        published=world.published(grid.package),
        since=grid.since,
        repository=grid.repository,
        resolve_ref=world.resolve_ref,
        base=world.base,
    )
    releases = resolver.resolve(options.releases or grid.run)
    stable = tuple(as_release(one) for one in resolver.stable())
    names, left_out = choose_runtimes(grid, options.runtimes, world)
    runtimes = tuple(dict.fromkeys(names.values()))
    present, absent = split_cases(selection(grid, options).cases(), world.devices)
    current, _ = split_by_revision(records, check_revision)
    known = None if options.fresh or options.locked else Known(current, check_revision)
    cells, settled = plan_cells(releases, runtimes, present, known)
    limits = grid.limits
    if options.workers:
        limits = replace(limits, workers=options.workers)
    return Plan(
        check_revision=check_revision,
        made_at=world.now(),
        names={asked: runtime.name for asked, runtime in names.items()},
        package=grid.package,
        runtimes=runtimes,
        releases=releases,
        stable=stable,
        cases=present,
        absent=absent,
        cells=cells,
        known=settled,
        requested=tuple(f"{one.name} {runtime.name}" for runtime in runtimes for one in releases),
        limits=limits,
        stale_after_days=grid.stale_after_days,
        refine=options.refine,
        left_out=left_out,
    )


def selection(grid: Grid, options: Options) -> Selection:
    """The words that choose cases: the options', and the grid's where there are none."""
    return Selection(
        models=options.models or grid.selection.models,
        scenarios=options.scenarios or grid.selection.scenarios,
        attention=options.attention or grid.selection.attention,
        devices=options.devices or grid.selection.devices,
        dtypes=options.dtypes or grid.selection.dtypes,
    )


def choose_runtimes(
    grid: Grid, names: Sequence[str], world: World
) -> tuple[dict[str, Runtime], tuple[str, ...]]:
    """The runtimes that `names` stand for: the grid's first without any, ``all`` of them.

    Each comes under the name that it was chosen by, with its torch resolved. A pair that is
    not in the grid may be named as well. With them comes a sentence for each pair that cannot
    exist and is left out.

    Raises:
        OptionsError: A name is no pair, or no pair is left.
    """
    chosen: list[Runtime] = [] if names else [grid.runtimes[0]]
    for name in names:
        chosen += grid.runtimes if name == "all" else [runtime_named(grid, name)]
    found: dict[str, Runtime] = {}
    left_out: list[str] = []
    for runtime in chosen:
        try:
            found[runtime.name] = _resolve_torch(runtime, world, check=bool(names))
        except LookupError as error:
            left_out.append(f"runtime {runtime.name} is left out: {error.args[0]}")
    if not found:
        raise OptionsError(
            "\n".join(left_out), advice="Name another pair, or one of the grid, or all."
        )
    return found, tuple(left_out)


def runtime_named(grid: Grid, name: str | None) -> Runtime:
    """The runtime of the grid with that name, or the pair that it spells; the first without.

    Raises:
        OptionsError: It is no pair.
    """
    if name is None:
        return grid.runtimes[0]
    by_name = {runtime.name: runtime for runtime in grid.runtimes}
    return by_name.get(name) or _pair(name)


def _pair(name: str) -> Runtime:
    python, slash, torch = name.partition("/")
    minor = python.partition(".")[2]
    if slash and python.startswith("3.") and minor.isdecimal():
        if torch == "latest":
            return Runtime(python=python, torch=torch)
        try:
            return Runtime(python=python, torch=str(Version(torch)))
        except InvalidVersion:
            pass
    raise OptionsError(
        f"--runtimes: {name!r} is no pair of a Python and a torch.",
        advice="Write PYTHON/TORCH, such as 3.12/2.9.1 or 3.11/latest, or all.",
    )


def _resolve_torch(runtime: Runtime, world: World, *, check: bool = False) -> Runtime:
    """`runtime` with ``latest`` resolved; with `check`, a version is looked up too.

    Raises:
        LookupError: There is no such torch for that Python.
    """
    if runtime.torch != "latest" and not check:
        return runtime
    torches = [one for one in world.published("torch") if one.admits(runtime.python)]
    if runtime.torch == "latest":
        stable = [t.version for t in torches if not t.yanked and not t.version.is_prerelease]
        if not stable:
            raise LookupError(f"the index has no torch for Python {runtime.python}")
        return replace(runtime, torch=max(stable).public)
    if not any(one.version.public == runtime.torch for one in torches):
        raise LookupError(f"the index has no torch {runtime.torch} for Python {runtime.python}")
    return runtime


def refine_plan(
    plan: Plan, records: Iterable[Record], runtime: str, tried: set[str]
) -> tuple[PlannedCell, ...]:
    """Cells on `runtime` that make the boundaries in `records` exact; see `matrix.refine`.

    Looks only at cases of the plan. `tried` holds releases that this run has asked for
    already, whatever came of it: they are not asked for again.
    """
    cases = set(plan.cases)
    current, _ = split_by_revision(records, plan.check_revision)
    mine = [record for record in current if record.runtime == runtime and record.case in cases]
    by_axis = histories(mine)
    admitted = [release for release in plan.stable if _fits(release, plan, runtime)]
    wanted = next_releases(
        by_axis,
        [release.version for release in admitted],
        asked=((axis, release) for axis in by_axis for release in tried),
    )
    versions = {version for chosen in wanted.values() for version in chosen}
    known = Known(current, plan.check_revision)
    return tuple(
        PlannedCell(release=release, runtime=runtime, cases=missing)
        for release in admitted
        if release.version in versions and (missing := known.missing(release, runtime, plan.cases))
    )


def _fits(release: Release, plan: Plan, runtime: str) -> bool:
    chosen = plan.runtime(runtime)
    return chosen is None or release.admits_python(chosen.python)
