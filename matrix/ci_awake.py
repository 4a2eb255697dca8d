"""``python -m matrix.ci_awake``: keep the schedule from being paused.

The platform stops the schedules of a repository in which nothing has happened for 60 days. The
commits of the data branch may count as something, or not: it does not say. Enabling a workflow
that is enabled already starts the 60 days anew, so each scheduled run does that. Standard
library only: it runs with a token that may change workflows, where nothing is installed.
"""

from __future__ import annotations

import subprocess
import sys
from typing import Final

WORKFLOW: Final = "matrix.yml"


def main() -> int:
    """Enable the workflow; returns the exit code."""
    return subprocess.run(["gh", "workflow", "enable", WORKFLOW], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
