"""Pages of a rendered site, parsed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bs4 import BeautifulSoup

if TYPE_CHECKING:
    from reports.site import Answer


def page(answer: Answer, path: str = "index.html") -> BeautifulSoup:
    """A page of the site, parsed."""
    return BeautifulSoup((answer.site / path).read_text("utf-8"), "html.parser")
