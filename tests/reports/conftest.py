"""The browser tests run only when they are named: they need Chromium, Node and Java."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from hypothesis import settings

from reports.site import Answer, render_site
from tests.reports.factory import RUN, some_records

settings.register_profile("shared-machine", deadline=None)
settings.load_profile("shared-machine")

BROWSER = Path(__file__).parent / "browser"


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave `browser/` alone unless an argument leads into it; `nox -s site` gives one."""
    if collection_path != BROWSER:
        return None
    named = (Path(config.invocation_params.dir, arg.split("::")[0]) for arg in config.args)
    return None if any(BROWSER in (path, *path.parents) for path in named) else True


@pytest.fixture(scope="session")
def answer(tmp_path_factory: pytest.TempPathFactory) -> Answer:
    """The site of `some_records`, which no test changes."""
    run = msgspec.structs.replace(RUN, releases=("1.0", "1.3.1", "1.6"))
    return render_site(some_records(), run, tmp_path_factory.mktemp("site"))
