"""The commands behind the nox sessions.

===================================  =====================================================
``python -m matrix plan``            resolve the grid, minus what the ledger knows
``python -m matrix cells RUNTIME``   run the plan's cells on one runtime, or a shard of them
``python -m matrix gather DIR …``    put records that were made elsewhere into the ledger
``python -m matrix bisect``          find where a case changed, between releases or commits
===================================  =====================================================

Every way to stop has an exit code of its own (see `matrix.errors`); a cell that is affected
or broken is a record and stops nothing.
"""

from __future__ import annotations

import sys
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING

from matrix.commands import cells_command, gather_command, plan_command
from matrix.errors import INTERRUPTED, HarnessError, OptionsError
from matrix.options import parse_options
from matrix.progress import Reporter

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str]) -> int:
    """Run one command; returns the exit code."""
    reporter = Reporter()
    command, *rest = arguments or ("--help",)
    try:
        return _dispatch(command, rest, reporter)
    except HarnessError as error:
        reporter.say(f"\nmatrix: {error.message}\n  → {error.advice}")
        return error.exit_code
    except KeyboardInterrupt:
        reporter.say(
            "\nmatrix: stopped. What was finished is kept; the same command goes on from there."
        )
        return INTERRUPTED


def _dispatch(command: str, rest: list[str], reporter: Reporter) -> int:
    prog = f"python -m matrix {command}"
    if command == "plan":
        plan_command(parse_options(rest, prog=prog), reporter)
    elif command == "cells":
        runtime, *rest = rest or ("",)
        cells_command(runtime, parse_options(rest, prog=f"{prog} {runtime}"), reporter)
    elif command == "gather":
        folders = list(takewhile(lambda word: not word.startswith("--"), rest))
        options = parse_options(rest[len(folders) :], prog=f"{prog} DIR …")
        gather_command([Path(folder) for folder in folders], options, reporter)
    elif command == "bisect":
        from matrix.bisect_command import bisect_command, parse_bisect_options

        bisect_command(parse_bisect_options(rest, prog=prog), reporter)
    else:
        print(__doc__)
        return 0 if command in ("--help", "-h") else OptionsError.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
