"""Jinja environments in which every output is escaped unless it says otherwise.

HTML is escaped by Jinja itself, and cleaned as a whole when it is written. For Markdown the
environment's `finalize` does the same: what a template prints is escaped as Markdown, but for
`reports.escape.Markdown`, which the filters return.
"""

from __future__ import annotations

from base64 import b64encode
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from reports.escape import escape_markdown, markdown_code, markdown_fence
from reports.words import look

TEMPLATES: Final = Path(__file__).parent / "templates"


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
