"""Where things lie in the site, and the anchors that others link to.

Names come from records, so they are hostile until they have been through here: whatever is
not plain is replaced, and a digest of the original keeps two names apart.
"""

from __future__ import annotations

import re
from functools import cache
from hashlib import sha256
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matrix.history import Axis

_NOT_PLAIN = re.compile(r"[^A-Za-z0-9._+-]+")
_MAX_LENGTH = 80


@cache
def slug(name: str) -> str:
    """`name` as a file name and an anchor: ``5.16.1`` stays, ``pr:1`` becomes ``pr-1.1f2e…``.

    Never empty, never a dot file, never a path; different names have different slugs, also on
    file systems that do not tell upper case from lower.
    """
    plain = _NOT_PLAIN.sub("-", name).strip("-.")[:_MAX_LENGTH]
    if plain and plain == name == name.lower():
        return plain
    return f"{plain or 'x'}.{sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"


def release_page(release: str) -> str:
    """Path of a release's page, from the root of the site."""
    return f"releases/{slug(release)}/index.html"


def model_page(model: str) -> str:
    """Path of a model's page, from the root of the site."""
    return f"models/{slug(model)}/index.html"


def release_anchor(release: str) -> str:
    """Anchor of a release's row on the first page."""
    return f"release-{slug(release)}"


@cache
def axis_anchor(axis: Axis) -> str:
    """Permanent anchor of a case's evidence on its release's page."""
    return "-".join(
        (
            slug(axis.model),
            slug(axis.scenario),
            slug(axis.attention),
            slug(axis.device),
            slug(axis.dtype),
            f"py{slug(axis.python)}",
            f"torch{slug(axis.torch)}",
        )
    )


def scenario_anchor(model: str, scenario: str) -> str:
    """Permanent anchor of a scenario on a release's page."""
    return f"{slug(model)}-{slug(scenario)}"
