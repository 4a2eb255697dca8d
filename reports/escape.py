"""Make text from a cell harmless: for any output, and for Markdown in particular.

Exception texts, versions, refs and paths come from code that is being tested; they are hostile
until they have been through here, or through Jinja's own escaping of HTML.
"""

from __future__ import annotations

import re
from typing import Final

_FORBIDDEN: Final = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f"  # no text of XML or HTML may hold these
    "\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff"  # surrogates, and what is no character
    "\u200e\u200f\u202a-\u202e\u2066-\u2069]"  # these turn the direction of what follows
)
_MARKDOWN: Final = re.compile(
    r"([\\`*_{}\[\]<>|~$&])"  # what means something anywhere
    r"|^([-+=#]|\d{1,9}(?=[.)](?:\s|$)))"  # what begins a block
    r"|(@|#(?=\d)|://|www(?=\.))"  # what GitHub makes a mention, a reference or a link of
)
_ENTITIES: Final = {"<": "&lt;", ">": "&gt;", "&": "&amp;"}
_WORD_JOINER: Final = "\u2060"
"""Is not seen, and keeps two characters from being taken as one mark."""


class Markdown(str):
    """Text that is Markdown already."""

    __slots__ = ()


def clean(text: str) -> str:
    """`text` without what no output can hold: control characters and tricks of direction."""
    if text.isascii() and text.isprintable():
        return text
    return _FORBIDDEN.sub("\ufffd", text)


def one_line(text: str) -> str:
    """`text`, clean, with every stretch of white space made one blank."""
    return " ".join(clean(text).split())


def escape_markdown(value: object) -> str:
    """`value` as literal text in a paragraph or a table cell of GitHub's Markdown."""
    if isinstance(value, Markdown):
        return value
    return _MARKDOWN.sub(_escape_match, one_line(str(value)))


def _escape_match(match: re.Match[str]) -> str:
    mark, block, link = match.groups()
    if mark:
        return _ENTITIES.get(mark, f"\\{mark}")
    if block:
        return f"{block}{_WORD_JOINER}" if block.isdigit() else f"\\{block}"
    return f"{link[0]}{_WORD_JOINER}{link[1:]}"


def markdown_code(value: object) -> Markdown:
    """`value` as inline code that no backtick in it can end, fit for a table cell."""
    text = one_line(str(value)).replace("|", "\\|")
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
