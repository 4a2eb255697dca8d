"""A site full of everything, and Chromium to look at it with.

Nothing here skips: where a tool is missing, the tests fail and say which.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

import msgspec
import pytest
from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service

from matrix.records import Defect, Status
from reports.site import render_site
from tests.reports.factory import RUN, cases, history, main_branch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matrix.records import Record

HERE = Path(__file__).parent
CORE = (
    "below-boundary",
    "decode-crossing",
    "prompt-at-boundary",
    "prompt-past-boundary",
    "left-padded",
)


def records() -> list[Record]:
    """Forty releases with three intervals, gaps, refs, another model and a missing device."""
    found: list[Record] = []
    for index in range(40):
        name = f"{1 + index // 20}.{index % 20}.0"
        for scenario in CORE:
            crosses = scenario in ("decode-crossing", "left-padded")
            outcome = "ok"
            if crosses and index < 8:
                outcome = "stale_keys"
            elif crosses and 15 <= index < 30:
                outcome = (
                    "wrong_mask" if scenario == "left-padded" and index > 24 else "prefix_lost"
                )
            elif index == 12:
                outcome = "timeout"
            found.extend(
                cases(
                    history({name: outcome}, scenario=scenario),
                    attention=("eager", "sdpa"),
                )
            )
            found.extend(history({name: "no_device"}, scenario=scenario, device="cuda"))
    # In all the affected ones a second call helps; no cache does so in the first releases only.
    found = [
        msgspec.structs.replace(
            r,
            evidence=msgspec.structs.replace(
                r.evidence,
                workarounds={
                    "second-call": Status.OK,
                    "no-cache": Status.OK if r.defect is Defect.STALE_KEYS else Status.AFFECTED,
                },
            ),
        )
        if r.status is Status.AFFECTED
        else r
        for r in found
    ]
    found.extend(main_branch("ok", scenario=scenario) for scenario in CORE)
    found.extend(history({"1.19.0": "crash", "2.19.0": "ok"}, model="phimoe"))
    return found


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site with a run before it, so that it has changes to tell."""
    folder = tmp_path_factory.mktemp("browser")
    before = [r for r in records() if r.release != "2.19.0"]
    earlier = msgspec.structs.replace(RUN, generated_at="2026-11-29T04:05:06Z")
    render_site(before, earlier, folder / "before")
    run = msgspec.structs.replace(
        RUN, releases=("1.3.1", "2.3.1"), problems=("pr:1: could not be reached",)
    )
    render_site(records(), run, folder / "site", previous=folder / "before")
    return folder / "site"


@pytest.fixture(scope="session")
def tools() -> Path:
    """Folder of the Node packages that check the pages; installed once, from the lock file."""
    modules = HERE / "node_modules"
    if not (modules / "axe-core" / "axe.min.js").exists():
        npm = _need("npm")
        subprocess.run([npm, "ci", "--ignore-scripts", "--prefix", str(HERE)], check=True)
    return modules


@pytest.fixture(scope="session")
def screenshots(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where pictures of the pages are kept: `SITE_SCREENSHOTS`, or a temporary folder."""
    named = os.environ.get("SITE_SCREENSHOTS")
    folder = Path(named) if named else tmp_path_factory.mktemp("screenshots")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    """One browser for all the tests, with nothing in it that calls home."""
    options = ChromeOptions()
    options.binary_location = _need("chromium", "chromium-browser", "google-chrome")
    for argument in (
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--hide-scrollbars",
        f"--user-data-dir={tmp_path_factory.mktemp('profile')}",
    ):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    browser = Chrome(options=options, service=Service(_need("chromedriver")))
    yield browser
    browser.quit()


@pytest.fixture
def driver(chromium: Chrome) -> Iterator[Chrome]:
    """The browser, wide and light; it must have nothing to complain of afterwards."""
    complaints(chromium)
    look(chromium)
    yield chromium
    chromium.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
    assert complaints(chromium) == []


@pytest.fixture(scope="session")
def served(site: Path) -> Iterator[str]:
    """Address of the site on this machine, under a path of its own."""
    handler = partial(_Quiet, directory=str(site.parent))
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/site/"
    server.shutdown()
    server.server_close()


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *args: object) -> None:
        """Say nothing."""


def complaints(browser: Chrome) -> list[str]:
    """What the browser has written to its console since the last time."""
    entries: list[dict[str, str]] = browser.get_log("browser")  # type: ignore[no-untyped-call]
    return [entry["message"] for entry in entries]


def look(
    browser: Chrome, *, width: int = 1280, height: int = 900, scheme: str = "light", media: str = ""
) -> None:
    """Set the width of the window and what the page is told of its reader's wishes."""
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False},
    )
    features = [
        {"name": "prefers-color-scheme", "value": scheme},
        {"name": "prefers-reduced-motion", "value": "reduce"},
    ]
    if media:
        features.append({"name": media, "value": "active"})
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": features})


def _need(*names: str) -> str:
    for name in names:
        path = shutil.which(name)
        if path:
            return path
    pytest.fail(f"{' or '.join(names)} is needed and not installed", pytrace=False)
