"""feed.xml: an Atom entry (RFC 4287) for every change, with ids that stay.

Built with the standard library: the one feed builder on the index needs lxml, dates entries by
the clock, and would save some forty lines.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Final
from xml.etree import ElementTree as ET

from reports.escape import clean
from reports.paths import release_page

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reports.changes import Change
    from reports.run import RunInfo
    from reports.view import View

ATOM: Final = "http://www.w3.org/2005/Atom"
ID: Final = "tag:longrope-matrix.invalid,2026:"
"""Ids are tag URIs (RFC 4151): they name, and lead nowhere."""


def feed(view: View, changes: Sequence[Change], run: RunInfo) -> bytes:
    """The feed of a site, newest change first.

    Links are absolute where the run knows the address of the site, else relative to the feed.
    """
    ET.register_namespace("", ATOM)
    root = ET.Element(_name("feed"))
    _text(root, "id", f"{ID}feed")
    _text(root, "title", "LongRoPE crossing in transformers")
    _text(root, "subtitle", view.headline)
    _text(root, "updated", changes[0].at if changes else run.generated_at)
    author = ET.SubElement(root, _name("author"))
    _text(author, "name", "LongRoPE matrix")
    base = run.site_url or ""
    _link(root, "self", f"{base}feed.xml")
    _link(root, "alternate", f"{base}index.html")
    for change in changes:
        entry = ET.SubElement(root, _name("entry"))
        _text(entry, "id", entry_id(change))
        _text(entry, "title", change.text)
        _text(entry, "updated", change.at)
        _text(entry, "content", change.why)
        ET.SubElement(entry, _name("category"), term=str(change.kind))
        _link(entry, "alternate", f"{base}{release_page(change.release)}")
    ET.indent(root)
    body = ET.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="utf-8"?>\n{body}\n'.encode()


def entry_id(change: Change) -> str:
    """The id of a change: the same in every later feed, different from every other change."""
    parts = "\0".join((change.at, str(change.kind), change.release, change.model))
    return f"{ID}change:{sha256(parts.encode('utf-8', 'surrogatepass')).hexdigest()[:20]}"


def _name(tag: str) -> str:
    return f"{{{ATOM}}}{tag}"


def _text(parent: ET.Element, tag: str, text: str) -> None:
    ET.SubElement(parent, _name(tag)).text = clean(text)


def _link(parent: ET.Element, rel: str, href: str) -> None:
    ET.SubElement(parent, _name("link"), rel=rel, href=clean(href))
