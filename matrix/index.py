"""What the package index has: every published version of one project.

The indexes are those that uv installs from (see `matrix.index_settings`); where none is
configured, pypi-simple knows the default.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from urllib.request import url2pathname

import pypi_simple
import requests
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import (
    InvalidSdistFilename,
    InvalidWheelFilename,
    canonicalize_name,
    parse_sdist_filename,
    parse_wheel_filename,
)
from packaging.version import InvalidVersion, Version

from matrix.errors import IndexUnreachableError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """One version of a project on an index.

    Attributes:
        version: The version.
        released_at: Upload time of its first file, ISO 8601 in UTC; None if not told.
        yanked: Whether every file of it was yanked.
        requires_python: Which Pythons may install it; None where that is not told.
        interpreters: Tags of the Pythons that its wheels are for, such as ``cp311`` or ``py3``;
            empty where it has no wheel.
    """

    version: Version
    released_at: str | None = None
    yanked: bool = False
    requires_python: SpecifierSet | None = None
    interpreters: frozenset[str] = frozenset()

    def admits(self, python: str) -> bool:
        """Whether it can be installed on ``3.11``: by what it says, and by its wheels."""
        if self.requires_python and not self.requires_python.contains(f"{python}.99"):
            return False
        tag = "cp" + python.replace(".", "")
        return not self.interpreters or bool(self.interpreters & {tag, "py3"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Where to look for packages.

    Attributes:
        indexes: Addresses of simple indexes, ``https:`` or ``file:``.
        folders: Local folders of wheels and source distributions.
    """

    indexes: tuple[str, ...]
    folders: tuple[Path, ...] = ()


def places(environ: Mapping[str, str]) -> Places:
    """Read the places from uv's variables."""
    default = environ.get("UV_DEFAULT_INDEX") or environ.get("UV_INDEX_URL")
    extra = f"{environ.get('UV_INDEX', '')} {environ.get('UV_EXTRA_INDEX_URL', '')}".split()
    links = environ.get("UV_FIND_LINKS", "").split(",")
    if environ.get("UV_NO_INDEX"):
        indexes: tuple[str, ...] = ()
    else:
        # An index may carry a name (`private=https://…`), which only uv needs.
        named = [default or pypi_simple.PYPI_SIMPLE_ENDPOINT, *extra]
        indexes = tuple(url.partition("=")[2] if _is_named(url) else url for url in named)
    return Places(
        indexes=indexes, folders=tuple(Path(link) for link in links if Path(link).is_dir() and link)
    )


def _is_named(url: str) -> bool:
    name, equals, _ = url.partition("=")
    return bool(equals) and ":" not in name


def published(project: str, where: Places) -> tuple[Published, ...]:
    """Every version of `project` that any of the places has, in version order.

    Raises:
        IndexUnreachableError: An index did not answer, or answered nonsense.
    """
    files: dict[Version, list[Published]] = {}
    for place in where.indexes:
        for found in _from_index(project, place):
            files.setdefault(found.version, []).append(found)
    for folder in where.folders:
        for found in _from_names(project, (path.name for path in folder.iterdir())):
            files.setdefault(found.version, []).append(found)
    return tuple(_merge(files[version]) for version in sorted(files))


def _merge(files: list[Published]) -> Published:
    times = [file.released_at for file in files if file.released_at]
    return Published(
        version=files[0].version,
        released_at=min(times, default=None),
        yanked=all(file.yanked for file in files),
        requires_python=files[0].requires_python,
        interpreters=frozenset().union(*(file.interpreters for file in files)),
    )


def _from_index(project: str, url: str) -> Iterator[Published]:
    try:
        page = _project_page(project, url)
    except (requests.RequestException, OSError, pypi_simple.UnsupportedContentTypeError) as error:
        raise IndexUnreachableError(
            f"The package index {without_credentials(url)} did not answer: {error}",
            advice="Check the network, or the index in uv's or pip's configuration. "
            "`nox -s report` works from the recorded results alone.",
        ) from error
    for package in page.packages if page else ():
        version = _version(package.filename, package.version)
        if version is None:
            continue
        uploaded = package.upload_time
        yield Published(
            version=version,
            released_at=uploaded.strftime("%Y-%m-%dT%H:%M:%SZ") if uploaded else None,
            yanked=package.is_yanked,
            requires_python=_specifiers(package.requires_python),
            interpreters=_interpreters(package.filename),
        )


def _project_page(project: str, url: str) -> pypi_simple.ProjectPage | None:
    """The index's page of `project`; None where it has no such project."""
    parts = urlsplit(url)
    if parts.scheme == "file":
        page = Path(url2pathname(parts.path)) / canonicalize_name(project) / "index.html"
        if not page.is_file():
            return None
        html = page.read_text(encoding="utf-8")
        return pypi_simple.ProjectPage.from_html(project, html, base_url=page.parent.as_uri() + "/")
    with pypi_simple.PyPISimple(endpoint=url) as client:
        try:
            return client.get_project_page(project, timeout=30)
        except pypi_simple.NoSuchProjectError:
            return None


def _from_names(project: str, names: Iterable[str]) -> Iterator[Published]:
    name = canonicalize_name(project)
    for filename in names:
        version = _version(filename, None)
        if version is not None and canonicalize_name(filename.split("-")[0]) == name:
            yield Published(version=version, interpreters=_interpreters(filename))


def _version(filename: str, told: str | None) -> Version | None:
    """The version in the name of a wheel or source distribution; None for other files."""
    try:
        if filename.endswith(".whl"):
            return parse_wheel_filename(filename)[1]
        return parse_sdist_filename(filename)[1]
    except (InvalidWheelFilename, InvalidSdistFilename):
        pass
    try:
        return Version(told) if told else None
    except InvalidVersion:
        return None


def _interpreters(filename: str) -> frozenset[str]:
    """The Python tags in the name of a wheel; none for another file."""
    try:
        return frozenset(tag.interpreter for tag in parse_wheel_filename(filename)[3])
    except InvalidWheelFilename:
        return frozenset()


def _specifiers(text: str | None) -> SpecifierSet | None:
    try:
        return SpecifierSet(text) if text else None
    except InvalidSpecifier:
        return None


def without_credentials(url: str) -> str:
    """`url` with its user and password taken out, for messages."""
    parts = urlsplit(url)
    if "@" not in parts.netloc:
        return url
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
