"""``python -m checks``: measure cases in this environment, and write what they showed."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from checks.catalog import MODELS, SCENARIOS, Case, select_cases

FOLDER = Path(__file__).resolve().parent

OK, AFFECTED, USAGE, UNDECIDED = 0, 1, 2, 3

# What would let a user's own pytest set-up change a measurement.
_FOREIGN = ("PYTEST_ADDOPTS", "PYTEST_PLUGINS")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command.

    Returns:
        0 where every case gave a record and none is affected, 1 where one is affected, 2 for
        wrong usage, 3 where one is in error or inconclusive, or nothing could be imported.
    """
    try:
        options = _parser().parse_args(argv)
    except SystemExit as stopped:  # argparse has said why; called in process, this must return
        return OK if stopped.code in (0, None) else USAGE
    try:
        cases = _cases(options)
        if options.reproduce:
            from checks.reproduce import script_for

            print(script_for(Case.parse(options.reproduce)))
            return OK
    except (ValueError, OSError) as error:
        print(f"checks: {error}", file=sys.stderr)
        return USAGE
    if options.list:
        for case in cases:
            print(case.id)
        return OK
    if not cases:
        print("checks: no case is selected", file=sys.stderr)
        return USAGE
    return _measure(cases, options)


def _measure(cases: tuple[Case, ...], options: argparse.Namespace) -> int:
    import pytest

    from checks.plugin import MatrixPlugin

    plugin = MatrixPlugin(cases, options.out, options.time_limit)
    arguments = [
        str(FOLDER / "test_crossing.py"),
        f"--rootdir={FOLDER.parent}",
        f"--confcutdir={FOLDER}",
        "-c",
        os.devnull,
        "--noconftest",
        "--import-mode=importlib",  # the others would put folders of ours before the release's
        "--assert=plain",
        "--capture=sys",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:warnings",
        "--tb=short",
        "-q",
        *(["--no-header", "--no-summary"] if options.out else []),
    ]
    with _own_pytest():
        status = pytest.main(arguments, plugins=[plugin])
    if status == pytest.ExitCode.INTERRUPTED:
        raise KeyboardInterrupt
    statuses = {result.status for result in plugin.results}
    if "affected" in statuses:
        return AFFECTED
    if len(plugin.results) < len(cases) or statuses & {"error", "inconclusive"}:
        return UNDECIDED
    return OK


@contextmanager
def _own_pytest() -> Iterator[None]:
    """Keep the user's plugins and options out, and put the environment back afterwards."""
    kept = {name: os.environ.pop(name) for name in _FOREIGN if name in os.environ}
    autoload = os.environ.get("PYTEST_DISABLE_PLUGIN_AUTOLOAD")
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    try:
        yield
    finally:
        os.environ.update(kept)
        if autoload is None:
            del os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"]
        else:
            os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = autoload


def _cases(options: argparse.Namespace) -> tuple[Case, ...]:
    if options.cases is None:
        return select_cases(
            options.scenarios, options.models, options.attention, options.devices, options.dtypes
        )
    if options.cases == "-":
        text = sys.stdin.read()
    else:
        text = Path(options.cases).read_text(encoding="utf-8")
    return tuple(Case.parse(line) for line in text.splitlines() if line.strip())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m checks",
        description="Measures the LongRoPE crossing on the transformers of this environment.",
        epilog=f"scenarios: core, all, {', '.join(SCENARIOS)}. models: {', '.join(MODELS)}.",
    )
    several: dict[str, Any] = {"nargs": "+", "metavar": "NAME"}
    parser.add_argument("--cases", metavar="FILE", help="case ids, one a line; - for stdin")
    parser.add_argument("--scenarios", default=["core"], **several)
    parser.add_argument("--models", default=["phi3"], **several)
    parser.add_argument("--attention", default=["eager", "sdpa"], **several)
    parser.add_argument("--devices", default=["cpu"], **several)
    parser.add_argument("--dtypes", default=["float32"], **several)
    parser.add_argument("--out", type=Path, metavar="FILE", help="write JSON lines here")
    parser.add_argument(
        "--time-limit", type=float, default=300.0, metavar="SECONDS", help="for a single case"
    )
    parser.add_argument("--list", action="store_true", help="name the cases and stop")
    parser.add_argument("--reproduce", metavar="CASE", help="print a script that shows this case")
    return parser


if __name__ == "__main__":
    sys.exit(main())
