"""badge.json: the answer as an endpoint for shields.io."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from reports.answer import Tone

if TYPE_CHECKING:
    from reports.view import View

_COLORS: Final = {
    Tone.GOOD: "0b7a6d",
    Tone.PARTLY: "8a6d00",
    Tone.BAD: "b3361b",
    Tone.UNKNOWN: "lightgrey",
}


class Badge(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The endpoint's form (shields.io, "Endpoint Badge")."""

    schema_version: int = 1
    label: str
    message: str
    color: str


def badge(view: View) -> Badge:
    """The badge of a report; grey where nothing is decided."""
    return Badge(label="LongRoPE crossing", message=view.badge, color=_COLORS[view.tone])
