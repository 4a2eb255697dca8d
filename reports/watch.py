"""What a run found, beside the run before it, as issues to be told.

===================================  ======================================================
``python -m reports.watch before``   set the last report aside, before it is rendered anew
``python -m reports.watch after``    compare the new one with it, and write what was found
===================================  ======================================================

`reports.watch_issues` then brings the findings to the tracker. A last report that cannot be
read is trouble, and no first report: otherwise everything that is new would go by untold.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from reports.previous import read_previous
from reports.watch_findings import find
from reports.watch_text import Links, issue

if TYPE_CHECKING:
    from collections.abc import Sequence

NO_REPORT = 2


def main(arguments: Sequence[str]) -> int:
    """Run one command; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m reports.watch", description=__doc__)
    parser.add_argument("command", choices=("before", "after"))
    parser.add_argument("--site", type=Path, default=Path("reports/site"), metavar="DIR")
    parser.add_argument("--before", type=Path, default=Path("before"), metavar="DIR")
    parser.add_argument("--outcome", type=Path, default=Path("outcome"), metavar="DIR")
    options = parser.parse_args(arguments)
    if options.command == "before":
        return set_aside(options.site, options.before)
    return compare(options.site, options.before, options.outcome)


def set_aside(site: Path, before: Path) -> int:
    """Keep the results of a site, if it has any, while it is rendered anew."""
    if (site / "results.json").is_file():
        before.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(site / "results.json", before / "results.json")
    return 0


def compare(site: Path, before: Path, outcome: Path) -> int:
    """Write what a site has found since; returns the exit code."""
    now = read_previous(site).results
    if now is None:
        print(f"reports.watch: there is no report in {site}", file=sys.stderr)
        return NO_REPORT
    previous = read_previous(before / "results.json")
    found = find(previous.results, now)
    links = Links.from_environ(os.environ)
    outcome.mkdir(parents=True, exist_ok=True)
    encoded = msgspec.json.encode([issue(finding, links) for finding in found])
    (outcome / "findings.json").write_bytes(msgspec.json.format(encoded, indent=2) + b"\n")
    if previous.problem:
        _add_trouble(outcome / "trouble.json", previous.problem)
    print(f"{len(found)} findings, {sum(finding.new for finding in found)} of them new")
    return 0


def _add_trouble(path: Path, problem: str) -> None:
    trouble = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else []
    path.write_text(json.dumps([*trouble, problem], indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
