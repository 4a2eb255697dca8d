"""Hostile text from a cell does no harm in any output."""

from __future__ import annotations

import csv
import json
import re
from base64 import b64encode
from hashlib import sha256
from io import StringIO
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import msgspec
import pytest
from bs4 import BeautifulSoup
from markdown_it import MarkdownIt
from rich.console import Console

from matrix.records import Controls, Evidence, Source
from reports.site import Answer, render_site
from reports.terminal import print_answer
from tests.reports.factory import RUN, main_branch, provenance, record

if TYPE_CHECKING:
    from pathlib import Path

    from matrix.records import Record

MARK = "zqxj"
"""Is in every hostile text, so that it can be found again."""

SCRIPT = f"</script></style></title></pre>--><img src=x onerror={MARK}>\"'><svg onload={MARK}>"
FORMULA = f'=HYPERLINK("http://{MARK}.example","x")'
MARKDOWN = (
    f"]({MARK}) [x](javascript:{MARK}) ![x](http://{MARK}.example/x.png) |||\n\n# {MARK}\n```"
)
CONTROL = f"\x00\x1b[31m{MARK}\x07\u202etxt.exe\ud800"
TEMPLATE = f"{{{{ {MARK} }}}}{{% raw %}}"
RICH = f"[bold red]{MARK}[/bold red][link=http://x]"
PATH = f"../../../{MARK}/../.."
HOSTILE = (SCRIPT, FORMULA, MARKDOWN, CONTROL, TEMPLATE, RICH, PATH)


def hostile_records(text: str) -> list[Record]:
    """Records with `text` wherever a record holds text that a cell could choose."""
    evidence = Evidence(
        tolerance=1e-4,
        error=0.5,
        last_call=text,
        trace=text,
        hypothesis=text,
        distances={text: 0.1},
        oracles=text,
        reading=text,
        controls=Controls(below=0.0),
        attention_used=text,
        generated=(1,),
        expected=(2,),
        message=text,
        log=text,
        notes=(text, text),
    )
    source = provenance(
        platform=text,
        device_name=text,
        isolation=text,
        process=text,
        python_build=text,
        packages="key",
        harness_commit=text,
    )
    plain = {"evidence": evidence, "provenance": source}
    return [
        record("1.0", "prefix_lost", **plain),
        record("1.1", "crashed", **plain),
        record("1.2", "ok", **plain),
        record("1.2", "crash", model=text, scenario=text, attention=text, device=text, dtype=text),
        record("1.2", "ok", released_at=text, python=text, torch=text),
        main_branch("crash", ref=text, commit=text, **plain),
        main_branch("ok", ref="a path", source=Source.PATH, commit=None, **plain),
    ]


@pytest.fixture(
    params=HOSTILE, ids=["script", "formula", "markdown", "control", "template", "rich", "path"]
)
def hostile(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Answer]:
    """A hostile text, and the site of records that are full of it."""
    text: str = request.param
    run = msgspec.structs.replace(
        RUN,
        harness_commit=text,
        repository=text,
        planned=(f"{text} 3.11/2.13.0",),
        problems=(text,),
        local=((text, text),),
        packages={"key": (text, text)},
    )
    return text, render_site(hostile_records(text), run, tmp_path / "site")


def test_html_has_our_elements_only(hostile: tuple[str, Answer]) -> None:
    """No element, attribute or link comes from the text; it is shown as text."""
    _, answer = hostile
    seen = ""
    for path in sorted(answer.site.rglob("*.html")):
        text = path.read_text("utf-8")
        soup = BeautifulSoup(text, "html.parser")
        assert len(soup.find_all("script")) == 1
        assert len(soup.find_all("style")) == 1
        assert not soup.find_all(["img", "iframe", "object", "embed", "base"])
        assert {form.get("id") for form in soup.find_all("form")} <= {"lookup", "filters"}
        for element in soup.find_all(True):
            assert not [name for name in element.attrs if name.startswith("on")]
            for name in ("href", "src", "action"):
                assert not re.match(r"\s*(?:javascript|data|https?):", str(element.get(name, "")))
        seen += soup.get_text()
    assert MARK in seen


def test_the_policy_allows_our_script_alone(hostile: tuple[str, Answer]) -> None:
    """The policy names the digests of the style and script that are in the page."""
    _, answer = hostile
    for path in sorted(answer.site.rglob("*.html")):
        soup = BeautifulSoup(path.read_text("utf-8"), "html.parser")
        meta = soup.find("meta", attrs={"http-equiv": "Content-Security-Policy"})
        assert meta is not None
        policy = dict(part.split(" ", 1) for part in str(meta["content"]).split("; "))
        assert policy["default-src"] == "'none'"
        for name in ("style", "script"):
            element = soup.find(name)
            assert element is not None
            digest = b64encode(sha256((element.string or "").encode()).digest()).decode()
            assert policy[f"{name}-src"] == f"'sha256-{digest}'"
        assert not soup.select("[style]")


def test_text_files_hold_no_control_characters(hostile: tuple[str, Answer]) -> None:
    """Neither they nor what turns the direction of text gets into anything people read."""
    _, answer = hostile
    for path in sorted(answer.site.rglob("*.*")):
        if path.suffix in (".html", ".md", ".csv", ".txt", ".xml"):
            text = path.read_bytes().decode("utf-8")
            assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\u202a-\u202e\u2066-\u2069]", text)


def test_files_stay_in_the_site(hostile: tuple[str, Answer], tmp_path: Path) -> None:
    """No name leads out of the folder, or hides."""
    _, answer = hostile
    assert [path.name for path in tmp_path.iterdir()] == ["site"]
    for path in answer.site.rglob("*"):
        assert re.fullmatch(r"[A-Za-z0-9_+-][A-Za-z0-9._+-]*", path.name)


def test_markdown_has_our_markup_only(hostile: tuple[str, Answer]) -> None:
    """No link, image, HTML or heading comes from the text."""
    _, answer = hostile
    text = (answer.site / "report.md").read_text("utf-8")
    tokens = MarkdownIt("gfm-like", {"linkify": False}).parse(text)
    for token in tokens:
        assert token.type != "html_block" or token.content.startswith("<sub>")
        if token.type == "heading_open":
            heading = tokens[tokens.index(token) + 1].content
            assert not heading.startswith(MARK)
        for child in token.children or ():
            assert child.type not in ("link_open", "image")
            assert child.type != "html_inline" or child.content in ("<sub>", "</sub>")


def test_csv_has_no_formula(hostile: tuple[str, Answer]) -> None:
    """No cell begins as a formula does, and every row has every column."""
    _, answer = hostile
    text = (answer.site / "results.csv").read_bytes().decode("utf-8")
    rows = list(csv.reader(StringIO(text, newline="")))
    assert len({len(row) for row in rows}) == 1
    assert len(rows) == 1 + len(hostile_records(""))
    for row in rows:
        assert not [cell for cell in row if cell.startswith(("=", "+", "-", "@", "\t", "\r"))]


def test_xml_and_json_are_well_formed(hostile: tuple[str, Answer], tmp_path: Path) -> None:
    """Also with control characters and half a surrogate pair in the text."""
    text, answer = hostile
    later = msgspec.structs.replace(RUN, generated_at="2026-12-01T00:00:00Z")
    again = tmp_path / "site"
    render_site([*hostile_records(text), record("1.3")], later, again, previous=answer.site)
    root = ET.fromstring((again / "feed.xml").read_bytes())
    assert len(list(root.iter("{http://www.w3.org/2005/Atom}entry"))) > 0
    for path in sorted(again.rglob("*.json")):
        json.loads(path.read_bytes())


def test_constraints_have_no_line_of_a_stranger(hostile: tuple[str, Answer]) -> None:
    """Every line is a comment or a specifier of ours."""
    _, answer = hostile
    for line in (answer.site / "constraints.txt").read_text("utf-8").splitlines():
        assert line.startswith("#") or re.fullmatch(r"transformers[0-9.,<>=!]+", line)


def test_the_terminal_gets_no_escape_sequence(hostile: tuple[str, Answer]) -> None:
    """Neither control characters nor rich's own mark-up."""
    _, answer = hostile
    out = StringIO()
    print_answer(answer, Console(file=out, force_terminal=False, width=100, color_system=None))
    shown = out.getvalue()
    assert "\x1b" not in shown
    assert "\x07" not in shown
    assert "\u202e" not in shown
