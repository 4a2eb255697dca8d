"""``nox -s bisect``: options, the two kinds of line, and what is printed."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from checks.catalog import Case
from checks.revision import check_revision
from matrix.bisect import NoChangeError, bisect
from matrix.cells import Bench, CellRunner
from matrix.commands import known_records
from matrix.commits import CommitLayers, is_ancestor, line_of_commits, subject
from matrix.errors import NoSuchReleaseError, OptionsError
from matrix.git import resolve_ref
from matrix.grid import Grid, Runtime, load_grid
from matrix.index import places, published
from matrix.index_settings import settings_here
from matrix.layers import Layers
from matrix.ledger import Ledger, read_file
from matrix.machine import harness_commit, now
from matrix.options import Parser
from matrix.plan import Known, PlannedCell
from matrix.records import Status
from matrix.releases import Release, Resolver, as_release
from matrix.resolve import runtime_named
from matrix.runtimes import prepare_runtime
from matrix.specs import Exact, parse_spec
from matrix.uv import find_uv
from matrix.work import ROOT, Work, grid_file, work_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from matrix.layers import Installer
    from matrix.progress import Reporter
    from matrix.records import Record
    from matrix.runtimes import Environment
    from matrix.uv import Uv

DEFAULT_CASE = "phi3/decode-crossing/eager/cpu/float32"


@dataclass(frozen=True, slots=True, kw_only=True)
class BisectOptions:
    """What to bisect.

    Attributes:
        repository: A local clone; None to bisect between published releases.
        good: Where the case is right: a ref, or a release.
        bad: Where it is not. Either may be the older one.
        case: Id of the case.
        runtime: Name of the runtime; None for the first of the grid.
        fresh: Measure also what the ledger knows.
    """

    repository: Path | None
    good: str
    bad: str
    case: str
    runtime: str | None
    fresh: bool


def parse_bisect_options(arguments: Sequence[str], *, prog: str) -> BisectOptions:
    """Parse the options.

    Raises:
        OptionsError: They mean nothing.
    """
    parser = Parser(
        prog=prog,
        description="Find where a case changed: the first bad release or commit, "
        "or the first fixed one where the bad end is older.",
    )
    parser.add_argument(
        "--repo", type=Path, metavar="PATH", help="a local clone; without it, published releases"
    )
    parser.add_argument("--good", required=True, metavar="REF", help="a ref, or a release")
    parser.add_argument("--bad", required=True, metavar="REF", help="a ref, or a release")
    parser.add_argument("--case", default=DEFAULT_CASE, help=f"default: {DEFAULT_CASE}")
    parser.add_argument("--runtimes", metavar="PYTHON/TORCH", help="default: first of the grid")
    parser.add_argument("--fresh", action="store_true", help="measure also what is recorded")
    parsed = parser.parse_args(arguments)
    try:
        case = Case.parse(parsed.case).id
    except ValueError as error:
        raise OptionsError(f"--case: {error}.", advice="python -m checks --list") from None
    return BisectOptions(
        repository=parsed.repo.resolve() if parsed.repo else None,
        good=parsed.good,
        bad=parsed.bad,
        case=case,
        runtime=parsed.runtimes,
        fresh=parsed.fresh,
    )


def bisect_command(options: BisectOptions, reporter: Reporter) -> None:
    """Bisect and print what was found.

    Raises:
        OptionsError: The ends do not differ, or cannot be tested.
        NoSuchReleaseError: An end is no release.
        RepositoryError: An end is no ref of the clone.
    """
    grid, work = load_grid(grid_file()), work_folder()
    environ = {**os.environ, **settings_here()}
    runtime = runtime_named(grid, options.runtime)
    uv = find_uv(environ)
    with reporter.phase(f"preparing runtime {runtime.name}"):
        environment = prepare_runtime(runtime, uv, work.runtimes)
    line: _Line
    if options.repository is None:
        line = _releases(options, grid, environ, environment, runtime, uv, work)
    else:
        line = _commits(options, options.repository, grid, environment, uv, work)
    try:
        _bisect(options, line, _bench(grid, runtime, environment, line, work), work, reporter)
    except NoChangeError as error:
        raise OptionsError(
            f"There is nothing to bisect: {error}.", advice="Name two ends that differ."
        ) from error
    finally:
        line.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    """Points in order of history, the oldest first, and how to get each ready."""

    points: Sequence[str]
    release: Callable[[str], Release]
    installer: Installer
    ledger: Ledger
    describe: Callable[[str], str]
    close: Callable[[], None]


def _releases(
    options: BisectOptions,
    grid: Grid,
    environ: dict[str, str],
    environment: Environment,
    runtime: Runtime,
    uv: Uv,
    work: Work,
) -> _Line:
    resolver = Resolver(
        published=published(grid.package, places(environ)),
        since=grid.since,
        repository=grid.repository,
        resolve_ref=resolve_ref,
        base=ROOT,
    )
    try:
        specs = [parse_spec(options.good), parse_spec(options.bad)]
    except ValueError as error:
        raise OptionsError(f"{error}.", advice="Name two releases, or a --repo.") from None
    if not all(isinstance(spec, Exact) for spec in specs):
        raise OptionsError(
            "--good and --bad: without --repo, both are versions.",
            advice="Name two releases, such as --good 4.47.1 --bad 5.0.0.",
        )
    first, last = (
        (one.version for one in resolver.resolve(specs)) if specs[0] != specs[1] else ("", "")
    )
    stable = [as_release(one) for one in resolver.stable()]
    versions = [one.version for one in stable]
    if first not in versions or last not in versions:
        raise NoSuchReleaseError(
            f"{first or options.good} and {last or options.bad} do not span stable releases.",
            advice="Name two different stable releases.",
        )
    span = stable[versions.index(first) : versions.index(last) + 1]
    by_name = {release.version: release for release in span}
    return _Line(
        points=tuple(by_name),
        release=by_name.__getitem__,
        installer=Layers(
            package=grid.package,
            runtime=environment,
            extras=runtime.extras,
            uv=uv,
            folder=work.layers(runtime.name),
        ),
        ledger=work.ledger,
        describe=lambda version: f"released {by_name[version].released_at or '?'}",
        close=lambda: None,
    )


def _commits(
    options: BisectOptions,
    repository: Path,
    grid: Grid,
    environment: Environment,
    uv: Uv,
    work: Work,
) -> _Line:
    older, newer = options.good, options.bad
    if not is_ancestor(repository, older, newer):
        older, newer = newer, older
    layers = CommitLayers(
        repository=repository,
        package=grid.package,
        runtime=environment,
        uv=uv,
        folder=work.root / "bisect",
    )
    return _Line(
        points=line_of_commits(repository, older, newer),
        release=layers.release,
        installer=layers,
        # Apart from the releases', since a commit on the way is nothing to report on.
        ledger=Ledger(work.root / "bisect" / "ledger"),
        describe=lambda commit: subject(repository, commit),
        close=layers.close,
    )


def _bench(
    grid: Grid, runtime: Runtime, environment: Environment, line: _Line, work: Work
) -> Bench:
    return Bench(
        runtime=runtime,
        environment=environment,
        installer=line.installer,
        folder=work.root / "runs" / f"bisect-{os.getpid()}",
        ledger=line.ledger,
        limits=replace(grid.limits, workers=1),
        workers=1,
        isolated=False,
        check_revision=check_revision(),
        harness_commit=harness_commit(ROOT),
        now=now,
        places=work.places,
        bytecode=work.bytecode,
    )


def _bisect(
    options: BisectOptions, line: _Line, bench: Bench, work: Work, reporter: Reporter
) -> None:
    measured: dict[str, Record] = {}
    durations: list[float] = []
    reporter.say(
        f"{len(line.points)} points, {options.case}, on {bench.runtime.name}; both ends first"
    )
    records = (*known_records(work, reporter), *line.ledger.load()[0])
    known = None if options.fresh else Known(records, bench.check_revision)
    with CellRunner(bench, reporter) as runner, reporter.cells(0):

        def test(point: str) -> Record:
            began = time.monotonic()
            release = line.release(point)
            found = records
            if known is None or known.missing(release, bench.runtime.name, [options.case]):
                cell = PlannedCell(
                    release=release, runtime=bench.runtime.name, cases=(options.case,)
                )
                reporter.more(1)
                runner.run([cell])
                found = tuple(read_file(bench.ledger.file(bench.runtime.name, release.key)))
            measured[point] = _newest(found, release, bench, options.case)
            durations.append(time.monotonic() - began)
            return measured[point]

        found = bisect(line.points, test)
    _print(found.last_old, line, measured, reporter, "the last before the change")
    if found.untested:
        shown = ", ".join(point[:12] for point in found.untested[:10])
        reporter.say(f"\n{len(found.untested)} between could not be tested: {shown}")
        reporter.say("The change is in one of those, or in:")
    fixed = measured[found.first_new].status is Status.OK
    _print(found.first_new, line, measured, reporter, "first fixed" if fixed else "first bad")
    warm = sorted(durations[2:]) or sorted(durations)
    reporter.say(f"\n{found.steps} steps; {warm[len(warm) // 2]:.1f} s a step once warm (median)")


def _newest(records: Sequence[Record], release: Release, bench: Bench, case: str) -> Record:
    """The newest record of the case that was just measured, or known already."""
    found = [
        record
        for record in records
        if record.case == case
        and record.runtime == bench.runtime.name
        and record.provenance.check_revision == bench.check_revision
        and (record.commit == release.commit if release.commit else record.release == release.name)
    ]
    return max(found, key=lambda record: record.provenance.started_at)


def _print(
    point: str, line: _Line, measured: dict[str, Record], reporter: Reporter, what: str
) -> None:
    record = measured[point]
    evidence = record.evidence
    defect = f" ({record.defect})" if record.defect else ""
    reporter.say(f"\n{what}: {point}  {line.describe(point)}")
    reporter.say(f"  {record.status}{defect}")
    for name, value in (
        ("largest relative error", evidence.error),
        ("tolerance", evidence.tolerance),
        ("first length that differs", evidence.first_length),
        ("last generation call", evidence.last_call),
        ("generated next token", evidence.generated),
        ("uncached full-prefix next token", evidence.expected),
        ("tokens fed + cached", evidence.trace),
    ):
        if value is not None:
            reporter.say(f"  {name}: {list(value) if isinstance(value, tuple) else value}")
