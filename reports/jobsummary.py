"""``python -m reports.jobsummary``: the report as the summary of a CI job, under its size limit.

What needs a person comes first: trouble, new findings, differences; then the Markdown report.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from matrix.ci_gate import read_list
from reports.escape import escape_markdown

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

MOST_BYTES: Final = 1_000_000
"""A summary may have 1 MiB; beyond that the platform shows nothing of it."""
CUT: Final = "\n\n*It goes on: the whole report is on the page, and in the artifact of this run.*\n"


def summary(
    report: str,
    *,
    trouble: Iterable[str] = (),
    findings: Iterable[Mapping[str, object]] = (),
    differences: Iterable[str] = (),
    most_bytes: int = MOST_BYTES,
) -> str:
    """The summary: what needs a person, then the report, as much as there is room for. Pure."""
    parts = [
        _part("Trouble", trouble),
        _part("New findings", (str(one["title"]) for one in findings if one["new"])),
        _part("Measured again, with another result", differences),
        report,
    ]
    text = "\n".join(part for part in parts if part)
    if len(text.encode()) <= most_bytes:
        return text
    room = most_bytes - len(CUT.encode())
    cut = text.encode()[:room].decode(errors="ignore")
    return cut[: cut.rfind("\n") + 1].rstrip("\n") + CUT


def _part(heading: str, lines: Iterable[str]) -> str:
    items = [f"- {escape_markdown(line)}" for line in lines]
    return "\n".join([f"## {heading}", "", *items, ""]) if items else ""


def main(arguments: Sequence[str]) -> int:
    """Add the summary to the file that the platform names, or print it."""
    parser = argparse.ArgumentParser(prog="python -m reports.jobsummary", description=__doc__)
    parser.add_argument("--site", type=Path, default=Path("reports/site"), metavar="DIR")
    parser.add_argument("--outcome", type=Path, default=Path("outcome"), metavar="DIR")
    options = parser.parse_args(arguments)
    text = summary(
        (options.site / "report.md").read_text(encoding="utf-8"),
        trouble=read_list(options.outcome / "trouble.json"),
        findings=read_list(options.outcome / "findings.json"),
        differences=read_list(options.outcome / "differences.json"),
    )
    if path := os.environ.get("GITHUB_STEP_SUMMARY"):
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(text)
    else:
        print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
