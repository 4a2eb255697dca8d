"""Jinja environments in which every output is escaped unless it says otherwise.

HTML is escaped by Jinja itself, and cleaned as a whole when it is written. For Markdown the
environment's `finalize` does the same: what a template prints is escaped as Markdown, but for
`Markdown`, which the filters here return.
"""

from __future__ import annotations

import re
from base64 import b64encode
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from reports.words import look

TEMPLATES: Final = Path(__file__).parent / "templates"

_FORBIDDEN: Final = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f"  # no text of XML or HTML may hold these
    "\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff"  # surrogates and code points that are no characters
    "\u200e\u200f\u202a-\u202e\u2066-\u2069]"  # these turn the direction of what follows
)
_MARKDOWN: Final = re.compile(r"([\\`*_{}\[\]()#+!|~>@:])|(?m:^(\s*)([-=]))|(?m:^(\s*\d+)(\.))")


class Markdown(str):
    """Text that is Markdown already."""

    __slots__ = ()


def clean(text: str) -> str:
    """`text` without what no output can hold: control characters and tricks of direction."""
    if text.isascii() and text.isprintable():
        return text
    return _FORBIDDEN.sub("\ufffd", text)


def escape_markdown(value: object) -> str:
    """`value` as literal text in a paragraph or a table cell of GitHub's Markdown."""
    if isinstance(value, Markdown):
        return value
    text = " ".join(clean(str(value)).split())
    text = text.replace("&", "&amp;").replace("<", "&lt;")
    return _MARKDOWN.sub(_escape_match, text)


def _escape_match(match: re.Match[str]) -> str:
    if match[1]:
        if match[1] == "@":
            return "@\u200b"  # no stranger is to be notified
        return match[1] if match[1] == ":" else f"\\{match[1]}"
    if match[3]:
        return f"{match[2]}\\{match[3]}"
    return f"{match[4]}\\{match[5]}"


def markdown_code(value: object) -> Markdown:
    """`value` as inline code that no backtick in it can end, fit for a table cell."""
    text = " ".join(clean(str(value)).split()).replace("|", "\\|")
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if text.startswith("`") or text.endswith("`") or not text else ""
    return Markdown(f"{fence}{pad}{text}{pad}{fence}")


def markdown_fence(value: object) -> Markdown:
    """`value` as a fenced block that no fence in it can end."""
    text = clean(str(value))
    longest = max((len(run) for run in re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return Markdown(f"{fence}\n{text}\n{fence}")


def source_hash(text: str) -> str:
    """`text` as a source of a content security policy, ``'sha256-…'``."""
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


@cache
def html() -> Environment:
    """The environment of the pages."""
    environment = _environment(autoescape=True)
    style, script = _asset("style.css"), _asset("page.js")
    policy = (
        "default-src 'none'; base-uri 'none'; form-action 'none';"
        f" style-src {source_hash(style)}; script-src {source_hash(script)}"
    )
    environment.filters["look"] = look
    environment.globals.update(
        style=Markup(style),  # noqa: S704 - our own files, hashed in the policy
        script=Markup(script),  # noqa: S704
        policy=policy,
    )
    return environment


@cache
def markdown() -> Environment:
    """The environment of report.md."""
    environment = _environment(autoescape=False)
    environment.finalize = escape_markdown
    environment.filters.update(code=markdown_code, fence=markdown_fence)
    return environment


def _environment(*, autoescape: bool) -> Environment:
    return Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=autoescape,  # noqa: S701 - Markdown is escaped by `finalize`
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


@cache
def _asset(name: str) -> str:
    return (TEMPLATES / name).read_text(encoding="utf-8")
