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
from checks.configuration import Configuration, read_configuration
from checks.verdict import (
    closing_lines,
    configuration_lines,
    environment_line,
    measure_all,
    misreading,
    scenarios_for,
)

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
        given = _configuration(options)
        cases = _cases(options)
        if options.reproduce:
            from checks.reproduce import script_for

            print(script_for(Case.parse(options.reproduce)))
            return OK
    except (ValueError, OSError) as error:
        print(f"checks: {error}", file=sys.stderr)
        return USAGE
    if options.config is not None and given is None:
        print(f"NOT AFFECTED: {options.config} has no LongRoPE, so there is no crossing.")
        return OK
    if options.list:
        for case in cases:
            print(case.id)
        return OK
    if not cases:
        print("checks: no case is selected", file=sys.stderr)
        return USAGE
    return _tell(cases, options, given) if options.verdict else _measure(cases, options)


def _configuration(options: argparse.Namespace) -> Configuration | None:
    """What ``--config`` names, which also chooses the model and adds to the scenarios."""
    if options.config is None:
        return None
    if not options.verdict:
        raise ValueError("--config belongs to --verdict")
    given = read_configuration(options.config)
    if given is not None:
        options.models = [given.model]
        options.scenarios = scenarios_for(given, options.scenarios)
    return given


def _tell(cases: tuple[Case, ...], options: argparse.Namespace, given: Configuration | None) -> int:
    from checks.environment import import_transformers

    failure = import_transformers()
    if failure is not None:
        print(f"checks: {failure.reason}: {failure.message}", file=sys.stderr)
        return UNDECIDED
    print(environment_line())
    for line in configuration_lines(given) if given is not None else ():
        print(line)
    misread = None if given is None else misreading(given)
    results = measure_all(cases, options.time_limit)
    for line in ("", *closing_lines(results, given, misread)):
        print(line)
    return AFFECTED if misread else _exit_status({result.status for result in results})


def _exit_status(statuses: set[str]) -> int:
    if "affected" in statuses:
        return AFFECTED
    return UNDECIDED if statuses & {"error", "inconclusive"} else OK


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
    found = _exit_status({result.status for result in plugin.results})
    return UNDECIDED if found == OK and len(plugin.results) < len(cases) else found


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
    parser.add_argument(
        "--verdict",
        action="store_true",
        help="say whether this environment is affected, and what helps; needs no pytest",
    )
    parser.add_argument(
        "--config",
        type=Path,
        metavar="PATH",
        help="with --verdict: the config.json of your model, or its folder",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
