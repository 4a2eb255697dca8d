"""``python -m reports``: gather the records, render the site, print the answer.

Inside a run it also reports what the plan asked for in vain; by itself (``nox -s report``) it
renders what is recorded, runs nothing and needs no network.
"""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from rich.console import Console

from checks.revision import check_revision
from matrix.canary import again_ledger, disagreements
from matrix.errors import DiskFullError, HarnessError
from matrix.gather import gather
from matrix.ledger import DISK_FULL
from matrix.machine import harness_commit, now
from matrix.options import parse_options
from matrix.plan import read_plan
from matrix.work import ROOT, committed_ledger, work_folder
from reports.run import RunInfo
from reports.site import render_site
from reports.terminal import print_answer
from reports.watch_text import Links

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from matrix.ledger import Ledger
    from matrix.options import Options
    from matrix.records import Record

SITE = ROOT / "reports" / "site"


def main(arguments: Sequence[str]) -> int:
    """Render the site; returns the exit code."""
    console = Console(highlight=False)
    try:
        render_command(parse_options(arguments, prog="python -m reports"), console)
    except HarnessError as error:
        console.print(f"\nreports: {error.message}\n  → {error.advice}", markup=False)
        return error.exit_code
    return 0


def render_command(options: Options, console: Console) -> None:
    """Gather, render and print.

    Raises:
        DiskFullError: No space is left for the site.
        CorruptFileError: The plan of this run cannot be read.
    """
    work = work_folder()
    path = options.plan or work.plan
    plan = read_plan(path) if options.plan or path.exists() else None
    committed, local = committed_ledger(), work.ledger
    known, damaged = committed.load()
    here, damaged_here = local.load()
    gathered = gather(known, here, plan)
    again, _ = again_ledger(work.root).load()
    differences = tuple(f"a difference: {one}" for one in disagreements(known, again))
    damage = tuple(f"a damaged file is passed over: {one}" for one in (*damaged, *damaged_here))
    links = Links.from_environ(os.environ)
    run = RunInfo(
        generated_at=made_at(os.environ),
        check_revision=plan.check_revision if plan else check_revision(),
        harness_commit=harness_commit(ROOT),
        repository=links.repository or None,
        site_url=links.site or None,
        planned=plan.requested if plan else (),
        releases=tuple(release.version for release in plan.stable) if plan else (),
        local=gathered.local,
        problems=(*(plan.problems if plan else ()), *differences, *damage),
        packages=locks(gathered.records, (committed, local)),
        stale_after_days=plan.stale_after_days if plan else 7,
    )
    site = options.site or SITE
    try:
        answer = render_site(gathered.records, run, site, previous=previous_results(site))
    except OSError as error:
        if error.errno not in DISK_FULL:
            raise
        raise DiskFullError(
            f"No space is left to write the report to {site}.",
            advice="Free some space and run `nox -s report`; the records are kept.",
        ) from error
    print_answer(answer, console)


def made_at(environ: Mapping[str, str]) -> str:
    """The time of the report; ``SOURCE_DATE_EPOCH`` fixes it, for builds that must repeat."""
    epoch = environ.get("SOURCE_DATE_EPOCH", "")
    if not epoch.isdecimal():
        return now()
    return datetime.fromtimestamp(int(epoch), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def locks(records: Sequence[Record], ledgers: Sequence[Ledger]) -> dict[str, tuple[str, ...]]:
    """The packages behind every key that a record names."""
    keys = {record.provenance.packages for record in records} - {None}
    found: dict[str, tuple[str, ...]] = {}
    for key in sorted(key for key in keys if key):
        locks = (ledger.lock(key) for ledger in ledgers)
        packages = next((lock for lock in locks if lock is not None), None)
        if packages is not None:
            found[key] = tuple(f"{name}=={version}" for name, version in packages.items())
    return found


def previous_results(site: Path) -> Path | None:
    """The results of the run before, if this folder holds any."""
    path = site / "results.json"
    return path if path.is_file() else None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
