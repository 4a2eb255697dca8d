"""Options after ``--``, the same for every session and command: parsed once, then frozen."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from checks import catalog
from matrix.errors import OptionsError
from matrix.specs import FORMS, Spec, parse_specs

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the user asked for; None or empty where the grid decides.

    Attributes:
        releases: Release specs.
        scenarios: Scenario names, or ``core`` or ``all``.
        models: Model names.
        attention: Attention backends.
        devices: Devices.
        dtypes: Data types.
        runtimes: Names ``PYTHON/TORCH``, or ``all``.
        fresh: Run also what the ledger knows.
        locked: Run also what the ledger knows, with exactly the packages it was run with.
        isolated: A fresh interpreter for every cell.
        record: Write to the committed ledger.
        refine: Make boundaries exact.
        shard: (I, N): run the I-th of N parts of the plan.
        workers: Cells at a time; 0 for as many as the machine allows.
        site: Folder for the report; None for ``reports/site``.
        plan: A plan made elsewhere, to be used instead of this run's.
        json: Print the plan as JSON.
    """

    releases: tuple[Spec, ...]
    scenarios: tuple[str, ...]
    models: tuple[str, ...]
    attention: tuple[str, ...]
    devices: tuple[str, ...]
    dtypes: tuple[str, ...]
    runtimes: tuple[str, ...]
    fresh: bool
    locked: bool
    isolated: bool
    record: bool
    refine: bool
    shard: tuple[int, int] | None
    workers: int
    site: Path | None
    plan: Path | None
    json: bool


class Parser(argparse.ArgumentParser):
    """Raises our own error instead of leaving the process."""

    def error(self, message: str) -> NoReturn:
        """Refuse the command line."""
        raise OptionsError(f"{message}.", advice=f"See what there is: {self.prog} --help")


def add_grid_options(
    parser: argparse.ArgumentParser,
) -> tuple[argparse._ArgumentGroup, argparse._ArgumentGroup]:
    """Declare the options that choose cells and say how they run, whatever runs in them.

    Returns:
        The groups for more of the kind: what is run, and how.
    """
    choose = parser.add_argument_group("what is run (default: matrix/grid.toml)")
    choose.add_argument("--releases", nargs="+", default=(), metavar="SPEC", help=f"each {FORMS}")
    choose.add_argument(
        "--runtimes",
        nargs="+",
        default=(),
        metavar="PYTHON/TORCH",
        help="such as 3.12/2.9.1 or 3.11/latest, or all of the grid; default: its first",
    )
    choose.add_argument(
        "--no-refine",
        dest="refine",
        action="store_false",
        help="do not run the releases between two that differ",
    )
    how = parser.add_argument_group("how it is run")
    how.add_argument(
        "--isolated", action="store_true", help="a fresh interpreter for every cell (slower)"
    )
    how.add_argument(
        "--workers", type=int, default=0, metavar="N", help="cells at a time (default: by machine)"
    )
    how.add_argument("--site", type=Path, metavar="DIR", help="where the report goes")
    return choose, how


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the common options on a parser."""
    choose, how = add_grid_options(parser)
    choose.add_argument(
        "--scenarios", nargs="+", default=(), metavar="NAME", help="names, or core, or all"
    )
    choose.add_argument("--models", nargs="+", default=(), metavar="NAME")
    choose.add_argument("--attention", nargs="+", default=(), metavar="NAME")
    choose.add_argument("--devices", nargs="+", default=(), metavar="NAME")
    choose.add_argument("--dtypes", nargs="+", default=(), metavar="NAME")
    choose.add_argument("--shard", metavar="I/N", help="run only the I-th of N equal parts")
    how.add_argument("--fresh", action="store_true", help="run also what the ledger knows")
    how.add_argument(
        "--locked",
        action="store_true",
        help="run recorded cells again, with exactly the packages of their records",
    )
    how.add_argument(
        "--record", action="store_true", help="keep the results in reports/ledger/, to commit"
    )
    how.add_argument("--plan", type=Path, metavar="FILE", help="where the plan is written, or read")
    how.add_argument("--json", action="store_true", help="print the plan as JSON (plan only)")


def parse_options(arguments: Sequence[str], *, prog: str = "nox -s matrix --") -> Options:
    """Parse and check the options.

    Raises:
        OptionsError: With everything that is wrong in them.
        SystemExit: ``--help`` was asked for.
    """
    parser = Parser(prog=prog, description="Check releases of transformers at the crossing.")
    add_options(parser)
    return options_from(parser.parse_args(arguments))


def options_from(parsed: argparse.Namespace) -> Options:
    """Check parsed options together. Raises as `parse_options` does."""
    specs, mistakes = parse_specs(parsed.releases)
    problems = [f"--releases: {mistake}" for mistake in mistakes]
    words = {
        "scenarios": parsed.scenarios,
        "models": parsed.models,
        "attentions": parsed.attention,
        "devices": parsed.devices,
        "dtypes": parsed.dtypes,
    }
    for key, names in words.items():
        for name in names:
            try:
                catalog.select_cases(**{key: (name,)})
            except ValueError as error:
                problems.append(f"--{key.replace('attentions', 'attention')}: {error}")
    shard = None
    if parsed.shard is not None:
        try:
            shard = parse_shard(parsed.shard)
        except ValueError as error:
            problems.append(f"--shard: {error}")
    if parsed.workers < 0:
        problems.append(f"--workers: {parsed.workers} is not a number of at least 0")
    if problems:
        raise OptionsError(
            "Some options mean nothing:\n" + "\n".join(f"  - {problem}" for problem in problems),
            advice="`nox -s matrix -- --help` lists the options, "
            "`python -m checks --list` the scenarios, models and backends.",
        )
    return Options(
        releases=specs,
        scenarios=tuple(parsed.scenarios),
        models=tuple(parsed.models),
        attention=tuple(parsed.attention),
        devices=tuple(parsed.devices),
        dtypes=tuple(parsed.dtypes),
        runtimes=tuple(parsed.runtimes),
        fresh=parsed.fresh,
        locked=parsed.locked,
        isolated=parsed.isolated,
        record=parsed.record,
        refine=parsed.refine,
        shard=shard,
        workers=parsed.workers,
        site=parsed.site,
        plan=parsed.plan,
        json=parsed.json,
    )


def parse_shard(text: str) -> tuple[int, int]:
    """``2/5`` -> (2, 5).

    Raises:
        ValueError: It is not a shard, or not one of so many.
    """
    index, slash, count = text.partition("/")
    if not slash or not index.isdecimal() or not count.isdecimal():
        raise ValueError(f"{text!r} is not I/N, such as 1/4")
    if not 1 <= int(index) <= int(count):
        raise ValueError(f"{text!r}: there are shards 1/{count} to {count}/{count}")
    return int(index), int(count)
