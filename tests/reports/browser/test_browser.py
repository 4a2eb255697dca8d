"""Chromium drives the pages, as a reader would."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

from tests.reports.browser.conftest import look

if TYPE_CHECKING:
    from pathlib import Path

    from selenium.webdriver import Chrome
    from selenium.webdriver.remote.webelement import WebElement

EVIDENCE = "phi3-decode-crossing-eager-cpu-float32-py3.11-torch2.13.0"
PAGES = ("index.html", "releases/2.0.0/index.html", "models/phi3/index.html")


def open_page(driver: Chrome, site: Path, path: str = "index.html") -> None:
    """Open a page from the file system; a page that is open already is left first."""
    driver.get("about:blank")
    driver.get((site / path.partition("#")[0]).as_uri() + "".join(path.partition("#")[1:]))


def find(driver: Chrome, selector: str) -> WebElement:
    """The one element that a selector names."""
    return driver.find_element(By.CSS_SELECTOR, selector)


def visible_rows(driver: Chrome) -> list[str]:
    """Releases whose rows are shown."""
    rows = driver.find_elements(By.CSS_SELECTOR, "tr[data-release]")
    return [row.get_attribute("data-release") or "" for row in rows if row.is_displayed()]


def test_the_answer_is_on_the_first_screen(driver: Chrome, site: Path) -> None:
    """Headline, sentences and what they rest on, without scrolling, on a laptop."""
    open_page(driver, site)
    assert find(driver, "h1").text == (
        "Affected: 1.0.0 to 1.7.0 and 1.15.0 to 2.9.0; fixed in 2.10.0"
    )
    measured = find(driver, ".measured")
    assert measured.location["y"] + measured.size["height"] < 900


class TestLookup:
    """Type a version, get its statement."""

    def say(self, driver: Chrome, site: Path, text: str) -> str:
        """What the page says to a text."""
        open_page(driver, site)
        field = find(driver, "#version")
        driver.execute_script(
            "arguments[0].value = arguments[1];"
            "arguments[0].dispatchEvent(new Event('input', {bubbles: true}));",
            field,
            text,
        )
        return find(driver, "#lookup output").text

    def test_a_version_by_the_keyboard(self, driver: Chrome, site: Path) -> None:
        """Typed as a person does."""
        open_page(driver, site)
        find(driver, "#version").send_keys("2.0.0")
        said = find(driver, "#lookup output").text
        assert said.startswith("transformers 2.0.0: ")
        assert "Phi-3: ✕ affected (prefix lost: decode-crossing and left-padded)" in said
        find(driver, "#lookup output a").click()
        assert find(driver, "h1").text == "transformers 2.0.0"

    @pytest.mark.parametrize(
        "text",
        [
            "torch==2.13.0\ntransformers==2.0.0\nnumpy==2.0",
            "transformers[torch] == 2.0.0  # pinned",
            "Name: transformers\nVersion: 2.0.0",
            "v2.0",
        ],
    )
    def test_what_pip_prints(self, driver: Chrome, site: Path, text: str) -> None:
        """`pip freeze`, a requirements file, `pip show`, a tag."""
        assert self.say(driver, site, text).startswith("transformers 2.0.0: ")

    def test_what_helps_without_another_release(self, driver: Chrome, site: Path) -> None:
        """Only what is right wherever that release goes wrong, and nothing where it doesn't."""
        first = self.say(driver, site, "1.3.0")
        assert "tried on it and right: Generate up to O + 1 tokens" in first
        assert "; or: generate(…, use_cache=False)" in first
        later = self.say(driver, site, "2.0.0")
        assert "call generate again" in later
        assert "use_cache" not in later
        assert "Without another release" not in self.say(driver, site, "1.9.0")

    def test_a_commit_of_main(self, driver: Chrome, site: Path) -> None:
        """An installation from git is found by its commit."""
        text = "transformers @ git+https://github.com/huggingface/transformers@3758eba846aa"
        assert self.say(driver, site, text).startswith("transformers main: ")

    def test_a_release_that_was_not_tested(self, driver: Chrome, site: Path) -> None:
        """It is unknown, whatever its neighbours are; they are named."""
        said = self.say(driver, site, "2.3.1")
        assert said.startswith("2.3.1 was not tested, so nothing is known about it.")
        assert "2.3.0 before it: Phi-3: ✕ affected" in said
        assert "2.4.0 after it: Phi-3: ✕ affected" in said

    @pytest.mark.parametrize("text", ["5.0.0.dev0", "banana", "<img src=x onerror=alert(1)>"])
    def test_anything_else(self, driver: Chrome, site: Path, text: str) -> None:
        """It is shown as the text it is, and nothing is claimed."""
        said = self.say(driver, site, text)
        assert "not tested" in said or "No line for transformers" in said
        assert not driver.find_elements(By.CSS_SELECTOR, "#lookup output img")

    def test_a_freeze_without_transformers(self, driver: Chrome, site: Path) -> None:
        """Said plainly."""
        said = self.say(driver, site, "torch==2.13.0\nnumpy==2.0")
        assert said == "No line for transformers in this text."


class TestFilter:
    """The grid shows what one looks for."""

    def test_by_release(self, driver: Chrome, site: Path) -> None:
        """Those that begin with what is typed."""
        open_page(driver, site)
        assert len(visible_rows(driver)) == 41
        find(driver, "[name=release]").send_keys("2.1")
        assert all(name.startswith("2.1") for name in visible_rows(driver))
        assert "11 of 41 releases shown" in find(driver, "#filters output").text

    def test_by_verdict(self, driver: Chrome, site: Path) -> None:
        """Only the affected ones, of any model."""
        open_page(driver, site)
        Select(find(driver, "[name=verdict]")).select_by_visible_text("affected")
        assert len(visible_rows(driver)) == 8 + 15

    def test_by_case(self, driver: Chrome, site: Path) -> None:
        """Columns that have nothing of it go; the others stay aligned with their heads."""
        open_page(driver, site)
        heads = driver.find_elements(By.CSS_SELECTOR, ".grid thead th[data-words]")
        find(driver, "[name=case]").send_keys("sdpa left-padded")
        shown = [head for head in heads if head.is_displayed()]
        assert 0 < len(shown) < len(heads)
        row = find(driver, "#release-2\\.0\\.0")
        cells = [cell for cell in row.find_elements(By.CSS_SELECTOR, "td") if cell.is_displayed()]
        assert len(cells) == 1 + len(shown)


def test_a_cell_leads_to_its_evidence(driver: Chrome, site: Path) -> None:
    """One click from the grid to the numbers, unfolded and in view."""
    open_page(driver, site)
    link = find(driver, "#release-2\\.0\\.0 td.bad a")
    driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", link)
    link.click()
    target = find(driver, ":target")
    assert "affected: prefix lost" in target.text
    assert "last generation call: ([[32], [59]], [[8], [8]], None)" in target.text
    assert target.find_element(By.TAG_NAME, "details").get_attribute("open")
    top = driver.execute_script("return arguments[0].getBoundingClientRect().top", target)
    assert 0 <= top < 900


def test_evidence_that_a_link_names_is_unfolded(driver: Chrome, site: Path) -> None:
    """Also where it is folded otherwise."""
    open_page(driver, site, f"releases/2.15.0/index.html#{EVIDENCE}")
    assert find(driver, ":target details").get_attribute("open")
    assert not find(driver, "[id*=sdpa] details").get_attribute("open")


def test_evidence_unfolds_by_the_keyboard(driver: Chrome, site: Path) -> None:
    """Enter on the summary."""
    open_page(driver, site, "releases/2.15.0/index.html")
    details = find(driver, f"[id='{EVIDENCE}'] details")
    details.find_element(By.TAG_NAME, "summary").send_keys(Keys.ENTER)
    assert details.get_attribute("open")


def test_the_heads_of_the_grid_stay(driver: Chrome, site: Path) -> None:
    """Scrolled down and to the right, heads and release names are still in view."""
    open_page(driver, site)
    look(driver, width=600)
    box = find(driver, ".scroll.tall")
    driver.execute_script("arguments[0].scrollIntoView(); arguments[0].scrollTo(400, 900);", box)
    top = driver.execute_script(
        "const box = arguments[0].getBoundingClientRect();"
        "const head = arguments[0].querySelector('thead th').getBoundingClientRect();"
        "return [head.top - box.top, head.left - box.left]",
        box,
    )
    assert all(-1 <= distance <= 2 for distance in top)


def test_the_keyboard_reaches_everything(driver: Chrome, site: Path) -> None:
    """Tab visits every link, field and scrolling region once, and shows where it is."""
    open_page(driver, site, "releases/2.0.0/index.html")
    expected = driver.execute_script(
        "return [...document.querySelectorAll('a, summary, input, select, textarea, [tabindex]')]"
        ".filter(e => e.checkVisibility()).length"
    )
    body = find(driver, "body")
    seen: set[str] = set()
    for _ in range(expected):
        body.send_keys(Keys.TAB)
        focused = driver.switch_to.active_element
        seen.add(focused.id)
        outline = focused.value_of_css_property("outline-style")
        assert outline != "none"
    assert len(seen) == expected


def test_without_script_everything_is_there(driver: Chrome, site: Path) -> None:
    """What only script can do is not offered; every release has an anchor."""
    driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    open_page(driver, site, "index.html#release-2.0.0")
    assert not find(driver, "#lookup").is_displayed()
    assert not find(driver, "#filters").is_displayed()
    assert len(visible_rows(driver)) == 41
    assert find(driver, ":target").get_attribute("data-release") == "2.0.0"
    assert "Look your version up" in find(driver, "noscript").text


@pytest.mark.parametrize("path", PAGES)
@pytest.mark.parametrize("width", [320, 390, 768])
def test_a_page_fits_a_narrow_screen(driver: Chrome, site: Path, path: str, width: int) -> None:
    """Only tables and pictures scroll sideways, inside their own frames."""
    look(driver, width=width)
    open_page(driver, site, path)
    wide = driver.execute_script(
        "return [...document.querySelectorAll('body *')]"
        ".filter(e => e.getBoundingClientRect().right > innerWidth && !e.closest('.scroll'))"
        ".map(e => [e.outerHTML.slice(0, 100), e.getBoundingClientRect().right])"
    )
    assert wide == []
    assert driver.execute_script("return document.scrollingElement.scrollWidth") <= width


def test_it_works_under_a_path_of_a_server(driver: Chrome, served: str) -> None:
    """Links are relative, also from the pages below."""
    driver.get(f"{served}index.html")
    find(driver, "#release-2\\.0\\.0 th a").click()
    find(driver, ".top .name").click()
    assert driver.current_url == f"{served}index.html"


@pytest.mark.parametrize(
    ("name", "path", "wishes"),
    [
        ("wide", "index.html", {"height": 3200}),
        ("dark", "index.html", {"height": 3200, "scheme": "dark"}),
        ("phone", "index.html", {"width": 390, "height": 3200}),
        ("narrow", "index.html", {"width": 320, "height": 3200}),
        ("forced-colors", "index.html", {"height": 3200, "media": "forced-colors"}),
        ("release", "releases/2.0.0/index.html", {"height": 2400}),
        ("release-dark", "releases/2.0.0/index.html", {"height": 2400, "scheme": "dark"}),
    ],
)
def test_pictures_of_the_pages(
    driver: Chrome,
    site: Path,
    screenshots: Path,
    name: str,
    path: str,
    wishes: dict[str, object],
) -> None:
    """They are kept for people to look at; an empty one would be small."""
    look(driver, **wishes)  # type: ignore[arg-type]
    open_page(driver, site, path)
    picture = screenshots / f"{name}.png"
    assert driver.save_screenshot(str(picture))
    assert picture.stat().st_size > 40_000


def test_it_can_be_printed(driver: Chrome, site: Path, screenshots: Path) -> None:
    """As a PDF of a few pages, with the answer as text on the first."""
    open_page(driver, site)
    printed = driver.execute_cdp_cmd(
        "Page.printToPDF", {"printBackground": False, "preferCSSPageSize": True}
    )
    content = base64.b64decode(printed["data"])
    (screenshots / "print.pdf").write_bytes(content)
    assert content.startswith(b"%PDF")
    assert 2 <= content.count(b"/Type /Page\n") <= 12
