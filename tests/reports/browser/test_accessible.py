"""axe and the Nu validator find nothing."""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from tests.reports.browser.conftest import look
from tests.reports.browser.test_browser import PAGES, open_page

if TYPE_CHECKING:
    from pathlib import Path

    from selenium.webdriver import Chrome


@pytest.mark.parametrize("path", PAGES)
@pytest.mark.parametrize(
    ("scheme", "width"), [("light", 1280), ("dark", 1280), ("light", 320), ("dark", 320)]
)
def test_axe_finds_nothing(
    driver: Chrome, site: Path, tools: Path, path: str, scheme: str, width: int
) -> None:
    """With everything unfolded, so that nothing hides from it."""
    look(driver, width=width, scheme=scheme)
    open_page(driver, site, path)
    driver.execute_script("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    driver.execute_script((tools / "axe-core" / "axe.min.js").read_text("utf-8"))
    result: dict[str, Any] = driver.execute_async_script(
        "const done = arguments[arguments.length - 1]; axe.run().then(done, e => done({error: e}));"
    )
    assert result["passes"]
    found = [
        (one["id"], one["help"], [node["html"][:200] for node in one["nodes"][:3]])
        for one in result["violations"]
    ]
    assert found == []


def test_the_nu_validator_finds_nothing(site: Path, tools: Path) -> None:
    """HTML and the CSS in it; every kind of page."""
    java = shutil.which("java")
    if java is None:
        pytest.fail("java is needed for the Nu validator and not installed", pytrace=False)
    jar = tools / "vnu-jar" / "build" / "dist" / "vnu.jar"
    pages = [str(site / path) for path in (*PAGES, "releases/main/index.html")]
    done = subprocess.run(
        [java, "-jar", str(jar), "--stdout", "--format", "json", "--errors-only", *pages],
        capture_output=True,
        text=True,
        check=False,
    )
    messages = json.loads(done.stdout)["messages"]
    assert [(m["url"], m.get("lastLine"), m["message"]) for m in messages] == []
    assert done.returncode == 0
