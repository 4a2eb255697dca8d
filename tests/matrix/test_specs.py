"""Release specs: every form, and mistakes that say what is allowed."""

from __future__ import annotations

from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from matrix.errors import NoSuchReleaseError
from matrix.git import UnreachableError
from matrix.index import Published
from matrix.records import Source
from matrix.releases import Resolver
from matrix.specs import (
    All,
    Exact,
    GitRef,
    Latest,
    LocalPath,
    Matching,
    Minors,
    parse_spec,
    parse_specs,
)

COMMIT = "c" * 40


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("5.16.1", Exact(Version("5.16.1"))),
        (" >=5.16,<5.21 ", Matching(SpecifierSet(">=5.16,<5.21"))),
        ("latest", Latest()),
        ("minors", Minors()),
        ("all", All()),
        ("main", GitRef("main", None, "refs/heads/main")),
        ("pr:12", GitRef("pr:12", None, "refs/pull/12/head")),
        ("git:file:///r@v1", GitRef("git:file:///r@v1", "file:///r", "v1")),
        ("git:git@host:r.git@v1", GitRef("git:git@host:r.git@v1", "git@host:r.git", "v1")),
        ("path:../transformers", LocalPath("../transformers")),
    ],
)
def test_every_form_is_read(text: str, spec: object) -> None:
    """DESIGN.md lists the forms."""
    assert parse_spec(text) == spec


@pytest.mark.parametrize(
    "text",
    [
        "latst",
        "",
        ">=",
        "pr:",
        "pr:abc",
        "pr:0",
        "git:url",
        "git:@x",
        "git:u@--upload-pack=x",
        "path:",
    ],
)
def test_a_malformed_spec_is_quoted_back(text: str) -> None:
    """So that the user finds it in the list."""
    with pytest.raises(ValueError, match=r".") as caught:
        parse_spec(text)
    assert repr(text) in str(caught.value)


def test_all_mistakes_are_told_at_once() -> None:
    """And what is fine is kept."""
    specs, mistakes = parse_specs(["latest", "nope", "pr:x"])
    assert specs == (Latest(),)
    assert len(mistakes) == 2


def published(*versions: str, yanked: tuple[str, ...] = ()) -> list[Published]:
    """An index with these versions."""
    return [Published(version=Version(v), yanked=v in yanked) for v in versions]


def resolver(**changes: object) -> Resolver:
    """A resolver over a small index, with a repository that has one ref."""

    def resolve_ref(url: str, ref: str) -> str | None:
        if "gone" in url:
            raise UnreachableError("no such host")
        return COMMIT if ref in ("refs/heads/main", "v1") else None

    fields: dict[str, object] = {
        "published": published(
            "1.0.0", "1.0.1", "1.1.0", "1.1.1", "2.0.0rc1", "2.0.0", "2.0.1", yanked=("1.1.1",)
        ),
        "since": Version("1.0.1"),
        "repository": "https://example.invalid/r",
        "resolve_ref": resolve_ref,
        "base": Path(__file__).parent,
    }
    return Resolver(**{**fields, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("spec", "versions"),
    [
        ("all", ["1.0.1", "1.1.0", "2.0.0", "2.0.1"]),
        ("minors", ["1.0.1", "1.1.0", "2.0.1"]),
        ("latest", ["2.0.1"]),
        ("<2", ["1.0.1", "1.1.0"]),
        ("1.1.1", ["1.1.1"]),
        ("2.0.0rc1", ["2.0.0rc1"]),
        ("1.0.0", ["1.0.0"]),
    ],
)
def test_specs_stand_for_releases(spec: str, versions: list[str]) -> None:
    """Yanked, pre- and older releases run when they are named, and not otherwise."""
    assert [r.version for r in resolver().resolve([parse_spec(spec)])] == versions


def test_a_release_asked_for_twice_is_run_once() -> None:
    """In version order, refs behind."""
    specs, _ = parse_specs(["main", "latest", "minors", "2.0.1"])
    assert [r.name for r in resolver().resolve(specs)] == ["1.0.1", "1.1.0", "2.0.1", "main"]


def test_a_ref_is_resolved_to_a_commit() -> None:
    """The commit is what the record carries."""
    (release,) = resolver().resolve([parse_spec("main")])
    assert (release.source, release.commit, release.ref) == (Source.GIT, COMMIT, "main")
    assert release.key == f"git-{COMMIT[:12]}"


def test_an_unreachable_repository_stops_nothing() -> None:
    """The release says why; the others are resolved."""
    here = resolver(repository="https://gone.invalid/r")
    found = here.resolve(parse_specs(["main", "latest"])[0])
    assert [r.unreachable is not None for r in found] == [False, True]


def test_what_stands_for_nothing_is_listed_with_the_nearest() -> None:
    """All of it in one message."""
    specs, _ = parse_specs(["2.0.2", ">9", "git:https://example.invalid/r@nope", "path:nowhere"])
    with pytest.raises(NoSuchReleaseError) as caught:
        resolver().resolve(specs)
    message = caught.value.message
    assert "`2.0.2`: no such release; the nearest are 2.0.1" in message
    assert "`>9`: no release fits; there are 1.0.1 to 2.0.1" in message
    assert "has no ref nope" in message
    assert "`path:nowhere`" in message
