"""Options of ``nox -s own``: the user's tests, and which cells they run in."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from matrix.errors import OptionsError
from matrix.options import Options, Parser, add_grid_options, add_options, options_from
from matrix.runner.own_cell import NO_PLUGINS
from matrix.specs import Minors
from matrix.work import ROOT

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

CONFIGURATION: Final = {
    "pytest.toml": "",
    ".pytest.toml": "",
    "pytest.ini": "",
    ".pytest.ini": "",
    "pyproject.toml": "[tool.pytest",
    "tox.ini": "[pytest]",
    "setup.cfg": "[tool:pytest]",
}
"""Where pytest looks for its settings, in its order, and what such a file then has in it."""
_PROJECT: Final = (*CONFIGURATION, "setup.py", ".git")
"""Any of these marks the folder of a project."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnOptions:
    """What the user asked for.

    Attributes:
        tests: Absolute paths of tests, with what selects in them: ``/a/test_b.py::test_c``.
        project: Folder that the tests belong to: names of tests begin there.
        paths: Folders that the tests import from.
        grid: Which cells, and how they run.
        requirements: Packages that the tests need beside torch and transformers.
        base: Folder that relative paths start from.
    """

    tests: tuple[str, ...]
    project: Path
    paths: tuple[Path, ...]
    grid: Options
    requirements: tuple[str, ...]
    base: Path

    @property
    def arguments(self) -> tuple[str, ...]:
        """The arguments of pytest: settings of the project of the tests, never those of ours."""
        plugins = () if self.requirements else (NO_PLUGINS,)
        where = (f"--rootdir={self.project}", f"--confcutdir={self.project}")
        return (*self.tests, *where, "-c", str(configuration(self.project)), *plugins)


def parse_own_options(arguments: Sequence[str], *, prog: str) -> OwnOptions:
    """Parse and check the options.

    Raises:
        OptionsError: They mean nothing, or a test is not there.
        SystemExit: ``--help`` was asked for.
    """
    parsed = _parser(prog).parse_args(arguments, namespace=_defaults())
    base = parsed.base.resolve()
    grid = options_from(parsed)
    tests = tuple(_test(word, base) for word in parsed.tests)
    project = project_of([Path(test.partition("::")[0]) for test in tests])
    missing = [str(folder) for folder in parsed.path if not (base / folder).is_dir()]
    if missing:
        raise OptionsError(f"--path: no such folder: {', '.join(missing)}.", advice="Correct it.")
    given = tuple((base / folder).resolve() for folder in parsed.path)
    beside = tuple(place for place in (project / "src", project) if place.is_dir())
    return OwnOptions(
        tests=tests,
        project=project,
        paths=tuple(dict.fromkeys((*given, *(one for one in beside if one != ROOT)))),
        grid=replace(
            grid,
            releases=grid.releases or (Minors(),),
            site=(base / grid.site).resolve() if grid.site else None,
        ),
        requirements=tuple(parsed.requirements),
        base=base,
    )


def _defaults() -> argparse.Namespace:
    """The common options as they are when none is given."""
    parser = Parser()
    add_options(parser)
    return parser.parse_args([])


def _parser(prog: str) -> Parser:
    parser = Parser(
        prog=prog,
        description="Run pytest tests of your own on many releases of transformers; without "
        "--releases on the newest patch of every minor. Settings of pytest and conftest.py are "
        "those of the tests' own project, without its addopts.",
    )
    parser.add_argument(
        "tests", nargs="+", metavar="TEST", help="a file or a folder of tests, or file.py::name"
    )
    choose, how = add_grid_options(parser)
    choose.add_argument(
        "--with",
        dest="requirements",
        nargs="+",
        default=(),
        metavar="PACKAGE",
        help="what the tests need beside torch and transformers; plugins of pytest too",
    )
    how.add_argument(
        "--path",
        type=Path,
        nargs="+",
        default=(),
        metavar="DIR",
        help="folders to import from, beside the project of the tests and its src/",
    )
    how.add_argument(
        "--from",
        dest="base",
        type=Path,
        default=Path(),
        metavar="DIR",
        help="where relative paths start (default: here)",
    )
    return parser


def _test(word: str, base: Path) -> str:
    """A test with an absolute path.

    Raises:
        OptionsError: There is no such file or folder.
    """
    name, separator, rest = word.partition("::")
    path = (base / Path(name).expanduser()).resolve()
    if not path.exists():
        raise OptionsError(
            f"There is no test {name}: {path} does not exist.",
            advice="Name a pytest file or folder, or file.py::name; behind them the options.",
        )
    return f"{path}{separator}{rest}"


def project_of(tests: Sequence[Path]) -> Path:
    """The nearest folder at or above all tests that looks like a project; else their own.

    The folders of this checkout are none, so that nothing of its settings counts.
    """
    common = Path(os.path.commonpath([one if one.is_dir() else one.parent for one in tests]))
    for folder in (common, *common.parents):
        if folder in (ROOT, *ROOT.parents):
            break
        if any((folder / name).exists() for name in _PROJECT):
            return folder
    return common


def configuration(project: Path) -> Path:
    """The file with pytest's settings in a project, or one that holds none."""
    for name, sign in CONFIGURATION.items():
        path = project / name
        if project == ROOT or not path.is_file():
            continue
        if sign in path.read_text(encoding="utf-8", errors="replace"):
            return path
    return Path(os.devnull)
