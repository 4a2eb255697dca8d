"""``python -m reports.watch``: what a run found, beside the run before it, as issues to be told.

Writes them for `reports.watch_issues`, which brings them to the tracker.
"""

from __future__ import annotations

import argparse
import os
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
    """Write the findings of a site; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m reports.watch", description=__doc__)
    parser.add_argument("--site", type=Path, default=Path("reports/site"), metavar="DIR")
    parser.add_argument("--outcome", type=Path, default=Path("outcome"), metavar="DIR")
    options = parser.parse_args(arguments)
    now = read_previous(options.site).results
    if now is None:
        print(f"reports.watch: there is no report in {options.site}", file=sys.stderr)
        return NO_REPORT
    earlier = now.runs[1].files[1] if len(now.runs) > 1 else None
    previous = read_previous(options.site / earlier).results if earlier else None
    found = find(previous, now)
    links = Links.from_environ(os.environ)
    encoded = msgspec.json.encode([issue(finding, links) for finding in found])
    options.outcome.mkdir(parents=True, exist_ok=True)
    path = options.outcome / "findings.json"
    path.write_bytes(msgspec.json.format(encoded, indent=2) + b"\n")
    print(f"{len(found)} findings, {sum(finding.new for finding in found)} of them new")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
