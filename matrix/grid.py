"""The grid: what is run by default, read from `grid.toml` and checked as a whole."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from packaging.version import InvalidVersion, Version

from checks import catalog
from matrix.errors import GridError
from matrix.specs import Spec, parse_specs

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Runtime:
    """One Python with one torch, and whatever else the check needs beside them.

    Attributes:
        python: ``3.11``: major and minor.
        torch: A version, or ``latest`` before it is resolved.
        extras: More requirements, such as ``tokenizers==0.21.0``.
    """

    python: str
    torch: str
    extras: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """``3.11/2.13.0``, and what is added behind a plus sign."""
        return "+".join([f"{self.python}/{self.torch}", *self.extras])


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which cases: the words as written, checked against the catalog."""

    models: tuple[str, ...]
    scenarios: tuple[str, ...]
    attention: tuple[str, ...]
    devices: tuple[str, ...]
    dtypes: tuple[str, ...]

    def cases(self) -> tuple[catalog.Case, ...]:
        """The cases of the catalog that these words select.

        Raises:
            ValueError: A word is unknown; the message says which and what is allowed.
        """
        return catalog.select_cases(
            scenarios=self.scenarios,
            models=self.models,
            attentions=self.attention,
            devices=self.devices,
            dtypes=self.dtypes,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one case and one cell may take, and how many run at a time (0: by the machine)."""

    seconds_per_case: int
    seconds_per_cell: int
    memory_per_cell_mb: int
    workers: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """Everything in `grid.toml`."""

    package: str
    since: Version
    run: tuple[Spec, ...]
    repository: str
    stale_after_days: int
    runtimes: tuple[Runtime, ...]
    selection: Selection
    limits: Limits


def load_grid(path: Path) -> Grid:
    """Read and check the grid.

    Raises:
        GridError: With every mistake in the file, each with its place and what is allowed.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise GridError(f"{path} cannot be read: {error}", advice="Restore the file.") from error
    return parse_grid(text, name=path.name)


def parse_grid(text: str, *, name: str = "grid.toml") -> Grid:
    """Check the text of a grid. Raises as `load_grid` does."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise GridError(f"{name} is not TOML: {error}", advice="Mend the syntax there.") from error
    reader = _Reader(document)
    grid = reader.grid()
    if reader.mistakes:
        listed = "\n".join(f"  - {mistake}" for mistake in reader.mistakes)
        count = len(reader.mistakes)
        raise GridError(
            f"{name} has {count} mistake{'s' if count > 1 else ''}:\n{listed}",
            advice="The comments in matrix/grid.toml say what each setting means.",
        )
    return grid


@dataclass(slots=True)
class _Reader:
    """Reads a grid and collects mistakes instead of stopping at the first."""

    document: dict[str, Any]
    mistakes: list[str] = field(default_factory=list)

    def grid(self) -> Grid:
        self._unknown("", self.document, ("releases", "runtimes", "cases", "limits"))
        releases = self._table("releases")
        cases = self._table("cases")
        limits = self._table("limits")
        self._unknown(
            "releases.", releases, ("package", "since", "run", "repository", "stale_after_days")
        )
        self._unknown("cases.", cases, tuple(Selection.__slots__))
        self._unknown("limits.", limits, tuple(Limits.__slots__))
        grid = Grid(
            package=self._text(releases, "releases.package", _is_project, "a project's name"),
            since=self._since(releases),
            run=self._specs(releases),
            repository=self._text(releases, "releases.repository", bool, "a repository's address"),
            stale_after_days=self._number(releases, "releases.stale_after_days", 1),
            runtimes=self._runtimes(),
            selection=Selection(
                **{
                    key: self._words(cases, f"cases.{key}")
                    for key in ("models", "scenarios", "attention", "devices", "dtypes")
                }
            ),
            limits=Limits(
                seconds_per_case=self._number(limits, "limits.seconds_per_case", 1),
                seconds_per_cell=self._number(limits, "limits.seconds_per_cell", 1),
                memory_per_cell_mb=self._number(limits, "limits.memory_per_cell_mb", 500),
                workers=self._number(limits, "limits.workers", 0),
            ),
        )
        self._check_cases(grid.selection)
        return grid

    def _check_cases(self, selection: Selection) -> None:
        """Ask the catalog about one list at a time, so that each mistake is told."""
        lists = {
            "models": selection.models,
            "scenarios": selection.scenarios,
            "attention": selection.attention,
            "devices": selection.devices,
            "dtypes": selection.dtypes,
        }
        parameters = {"attention": "attentions"}
        for key, words in lists.items():
            for word in words:
                try:
                    catalog.select_cases(**{parameters.get(key, key): (word,)})
                except ValueError as error:
                    self.mistakes.append(f"cases.{key}: {error}")

    def _unknown(self, prefix: str, table: dict[str, Any], known: Sequence[str]) -> None:
        self.mistakes += [
            f"{prefix}{key}: no such setting; there are {', '.join(known)}"
            for key in table
            if key not in known
        ]

    def _table(self, name: str) -> dict[str, Any]:
        table = self.document.get(name)
        if isinstance(table, dict):
            return table
        self.mistakes.append(
            f"[{name}]: this table is missing"
            if table is None
            else f"{name}: a table is wanted, [{name}]"
        )
        return {}

    def _value(self, table: dict[str, Any], where: str) -> Any:
        key = where.rpartition(".")[2]
        if key not in table:
            if table or where.count(".") > 1:
                self.mistakes.append(f"{where}: this setting is missing")
            return None
        return table[key]

    def _text(
        self, table: dict[str, Any], where: str, fits: Callable[[str], object], wanted: str
    ) -> str:
        value = self._value(table, where)
        if value is None:
            return ""
        if not isinstance(value, str) or not fits(value):
            self.mistakes.append(f"{where}: {value!r} is not {wanted}")
            return ""
        return value

    def _number(self, table: dict[str, Any], where: str, least: int) -> int:
        value = self._value(table, where)
        if value is None:
            return least
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            self.mistakes.append(f"{where}: {value!r} is not a whole number of at least {least}")
            return least
        return value

    def _words(self, table: dict[str, Any], where: str) -> tuple[str, ...]:
        value = self._value(table, where)
        if value is None:
            return ()
        if not isinstance(value, list) or not value or not all(isinstance(v, str) for v in value):
            self.mistakes.append(f'{where}: {value!r} is not a list of names, such as ["…"]')
            return ()
        return tuple(value)

    def _since(self, table: dict[str, Any]) -> Version:
        text = self._text(table, "releases.since", _is_version, 'a version, such as "4.41.0"')
        return Version(text or "0")

    def _specs(self, table: dict[str, Any]) -> tuple[Spec, ...]:
        specs, mistakes = parse_specs(self._words(table, "releases.run"))
        self.mistakes += [f"releases.run: {mistake}" for mistake in mistakes]
        return specs

    def _runtimes(self) -> tuple[Runtime, ...]:
        tables = self.document.get("runtimes")
        if (
            not isinstance(tables, list)
            or not tables
            or not all(isinstance(t, dict) for t in tables)
        ):
            self.mistakes.append("[[runtimes]]: at least one is wanted, with python and torch")
            return ()
        runtimes: list[Runtime] = []
        for number, table in enumerate(tables, start=1):
            where = f"runtimes.{number}"
            self._unknown(f"{where}.", table, ("python", "torch", "with"))
            runtime = Runtime(
                python=self._text(table, f"{where}.python", _is_python, 'a Python such as "3.11"'),
                torch=self._text(table, f"{where}.torch", _is_torch, 'a version or "latest"'),
                extras=self._words(table, f"{where}.with") if table.get("with") else (),
            )
            if runtime in runtimes:
                self.mistakes.append(f"{where}: the same as runtimes.{runtimes.index(runtime) + 1}")
            runtimes.append(runtime)
        return tuple(runtimes)


def _is_project(text: str) -> bool:
    return re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?", text) is not None


def _is_python(text: str) -> bool:
    return re.fullmatch(r"3\.\d+", text) is not None


def _is_version(text: str) -> bool:
    try:
        Version(text)
    except InvalidVersion:
        return False
    return True


def _is_torch(text: str) -> bool:
    return text == "latest" or _is_version(text)
