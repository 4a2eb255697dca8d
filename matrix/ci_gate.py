"""``python -m matrix.ci_gate``: whether a run that has done all its work is red all the same.

It is red for what somebody has to look at: a new regression, and trouble with infrastructure.
Everything is published by then. Standard library only: it runs where nothing is installed.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

RED: Final = 1
FINE: Final = frozenset({"success", "skipped"})


def main(arguments: Sequence[str]) -> int:
    """Print why the run is red and return `RED`, or 0."""
    parser = argparse.ArgumentParser(
        prog="python -m matrix.ci_gate",
        description="Decide on a run. NEEDS holds the platform's word on each job, as JSON.",
    )
    parser.add_argument("--outcome", type=Path, default=Path("outcome"), metavar="DIR")
    options = parser.parse_args(arguments)
    needs = {name: str(job.get("result")) for name, job in json.loads(os.environ["NEEDS"]).items()}
    reasons = why_red(
        needs,
        read_list(options.outcome / "findings.json"),
        read_list(options.outcome / "trouble.json"),
    )
    for reason in reasons:
        print(f"::error::{' '.join(reason.split())}")
    print("red" if reasons else "green")
    return RED if reasons else 0


def why_red(
    needs: Mapping[str, str], findings: Iterable[Mapping[str, object]], trouble: Iterable[str]
) -> tuple[str, ...]:
    """The reasons to fail, none where all is well. Pure.

    Args:
        needs: Job -> its result, in the platform's words. A job that was skipped because there
            was nothing to do is fine; one that was skipped because another failed is not alone.
        findings: As `reports.watch` writes them.
        trouble: As `python -m matrix.ci gather` writes it.
    """
    return (
        *(
            f"The job {job} ended in {result}."
            for job, result in needs.items()
            if result not in FINE
        ),
        *trouble,
        *(
            f"New regression: {finding['title']}"
            for finding in findings
            if finding["new"] and finding["regression"]
        ),
    )


def read_list(path: Path) -> list[Any]:
    """What another job wrote; nothing where that job had nothing to do."""
    if not path.is_file():
        return []
    content = json.loads(path.read_text(encoding="utf-8"))
    assert isinstance(content, list)
    return content


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
