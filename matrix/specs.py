"""Release specs: the words with which a user says which releases to run.

========================  ==========================================================
``5.16.1``                this version, even a pre-release or a yanked one
``>=5.16,<5.21``          every release in one specifier set
``latest``                the newest release
``minors``                the newest patch of every minor
``all``                   every release
``main``                  the head of the repository's main branch
``git:URL@REF``           a branch, tag or commit of any repository
``pr:NUMBER``             the head of a pull request
``path:DIR-OR-WHEEL``     a checkout or wheel on this machine
========================  ==========================================================

Parsing is pure; `matrix.releases` asks the index and the repositories.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

if TYPE_CHECKING:
    from collections.abc import Iterable

WORDS = ("latest", "minors", "all", "main")
FORMS = "a version, a specifier set, latest, minors, all, main, git:URL@REF, pr:NUMBER, path:PATH"


@dataclass(frozen=True, slots=True)
class Exact:
    """One version."""

    version: Version


@dataclass(frozen=True, slots=True)
class Matching:
    """Every release that a specifier set admits."""

    specifiers: SpecifierSet


@dataclass(frozen=True, slots=True)
class Latest:
    """The newest release."""


@dataclass(frozen=True, slots=True)
class Minors:
    """The newest patch of every minor."""


@dataclass(frozen=True, slots=True)
class All:
    """Every release."""


@dataclass(frozen=True, slots=True)
class GitRef:
    """A ref of a repository; `url` is None for the repository of the grid.

    Attributes:
        name: How the user called it, and how the report does.
        url: Where the repository is.
        ref: Branch, tag, commit or ``refs/…``.
    """

    name: str
    url: str | None
    ref: str


@dataclass(frozen=True, slots=True)
class LocalPath:
    """A checkout or a wheel on this machine."""

    path: str


Spec = Exact | Matching | Latest | Minors | All | GitRef | LocalPath


def parse_spec(text: str) -> Spec:
    """Read one release spec.

    Raises:
        ValueError: `text` is none; the message quotes it and says what is allowed.
    """
    match text.strip():
        case "latest":
            return Latest()
        case "minors":
            return Minors()
        case "all":
            return All()
        case "main":
            return GitRef("main", None, "refs/heads/main")
        case stripped:
            return _parse_form(stripped)


def _parse_form(text: str) -> Spec:
    kind, separator, rest = text.partition(":")
    if separator and kind == "pr":
        if not re.fullmatch(r"[1-9][0-9]*", rest):
            raise ValueError(f"{text!r}: after `pr:` comes the number of a pull request")
        return GitRef(text, None, f"refs/pull/{rest}/head")
    if separator and kind == "git":
        url, at, ref = rest.rpartition("@")
        if not at or not url or not ref or url.startswith("-") or ref.startswith("-"):
            raise ValueError(f"{text!r}: write git:URL@REF, with a branch, tag or commit as REF")
        return GitRef(text, url, ref)
    if separator and kind == "path":
        if not rest:
            raise ValueError(f"{text!r}: after `path:` comes a checkout or a wheel")
        return LocalPath(rest)
    if text[:1] in "<>=!~" and text:
        try:
            return Matching(SpecifierSet(text))
        except InvalidSpecifier:
            raise ValueError(f"{text!r} is no specifier set, such as >=5.16,<5.21") from None
    try:
        return Exact(Version(text))
    except InvalidVersion:
        raise ValueError(f"{text!r} is no release spec; allowed: {FORMS}") from None


def parse_specs(texts: Iterable[str]) -> tuple[tuple[Spec, ...], tuple[str, ...]]:
    """Read several specs; returns those that are fine and a message for each that is not."""
    specs: list[Spec] = []
    mistakes: list[str] = []
    for text in texts:
        try:
            specs.append(parse_spec(text))
        except ValueError as error:
            mistakes.append(str(error))
    return tuple(specs), tuple(mistakes)
