"""The browser tests run only when they are named: they need Chromium, Node and Java."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from hypothesis import settings

if TYPE_CHECKING:
    import pytest

settings.register_profile("shared-machine", deadline=None)
settings.load_profile("shared-machine")

BROWSER = Path(__file__).parent / "browser"


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave `browser/` alone unless an argument leads into it; `nox -s site` gives one."""
    if collection_path != BROWSER:
        return None
    named = (Path(config.invocation_params.dir, arg.split("::")[0]) for arg in config.args)
    return None if any(BROWSER in (path, *path.parents) for path in named) else True
