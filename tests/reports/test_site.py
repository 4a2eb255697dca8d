"""The site: its links, what is unknown in it, its evidence, its runs, and that it repeats."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import msgspec
import pytest
from bs4 import BeautifulSoup

from reports.build import MOST_CHANGES
from reports.site import Answer, render_site
from tests.reports.factory import RUN, history, provenance, record, some_records
from tests.reports.pages import page

if TYPE_CHECKING:
    from pathlib import Path


ATOM = "{http://www.w3.org/2005/Atom}"


def test_what_is_wrong_is_never_pinned(tmp_path: Path) -> None:
    """With no release right in the core ways of use, the constraint is a comment."""
    render_site([record(outcome="crash"), record(scenario="left-padded")], RUN, tmp_path)
    lines = (tmp_path / "constraints.txt").read_text("utf-8").splitlines()
    assert "# transformers==1.0.0" in lines
    assert all(line.startswith("#") for line in lines)


class TestLinks:
    """The site works from any folder, and alone."""

    def test_every_link_leads_somewhere(self, answer: Answer) -> None:
        """Every relative link is a file of the site, every fragment an anchor of it."""
        for path in sorted(answer.site.rglob("*.html")):
            for link in BeautifulSoup(path.read_text("utf-8"), "html.parser").select("a[href]"):
                target, _, fragment = str(link["href"]).partition("#")
                assert not re.match(r"[a-z]+:|/", target), target
                file = (path.parent / target).resolve() if target else path
                assert file.is_file(), f"{path}: {link['href']}"
                if fragment:
                    there = BeautifulSoup(file.read_text("utf-8"), "html.parser")
                    assert there.find(id=fragment), f"{path}: {link['href']}"

    def test_nothing_is_fetched(self, answer: Answer) -> None:
        """No image, script, style or font comes from elsewhere."""
        for path in sorted(answer.site.rglob("*.html")):
            text = path.read_text("utf-8")
            assert not re.search(r"<(?:img|iframe|object|embed|base)\b", text)
            assert re.findall(r"<link [^>]*?rel=\"(\w+)\"", text) == ["alternate"]
            assert not re.search(r"\b(?:src|srcset|action)=|@import|url\((?!#)", text)


class TestUnknown:
    """What is not known looks like it, everywhere."""

    def test_in_the_grid(self, answer: Answer) -> None:
        """A release in doubt, or without the model, is not green in any cell."""
        row = page(answer).find(id="release-1.4")
        assert row is not None
        assert not row.select("td.good")
        assert "not decided" in row.get_text()

    def test_a_release_without_this_model_has_its_row(self, answer: Answer) -> None:
        """Every row has a cell for every column, also where nothing was tested."""
        rows = page(answer).select("table.grid tr")
        assert len({len(row.find_all(["th", "td"])) for row in rows}) == 1
        row = page(answer).find(id="release-2.0")
        assert row is not None
        assert {cell.get_text() for cell in row.select("td")[1:]} == {"not tested"}

    def test_never_in_a_denominator(self, answer: Answer) -> None:
        """Cases that cannot run here are counted by themselves."""
        counts = json.loads((answer.site / "results.json").read_bytes())["coverage"]
        assert counts["unsupported"] == 1
        assert counts["not_run"] == 3
        assert counts["records"] + counts["undecided"] == len(some_records()) - 4

    def test_in_the_limits(self, answer: Answer) -> None:
        """Why something was not measured is said, with how often."""
        text = page(answer).get_text()
        assert "3 records: not run, no such device here." in text
        assert "4 records: error, ran out of time." in text
        assert "1 release of the index has no record at all." in text


def test_the_same_records_give_the_same_bytes(tmp_path: Path) -> None:
    """In whatever order they come."""
    render_site(some_records(), RUN, tmp_path / "one")
    render_site(some_records()[::-1], RUN, tmp_path / "two")
    one = {p.relative_to(tmp_path / "one"): p for p in (tmp_path / "one").rglob("*.*")}
    two = {p.relative_to(tmp_path / "two"): p for p in (tmp_path / "two").rglob("*.*")}
    assert one.keys() == two.keys()
    assert [n for n in one if one[n].is_file() and one[n].read_bytes() != two[n].read_bytes()] == []


def test_an_empty_ledger_makes_a_site(tmp_path: Path) -> None:
    """It says that nothing has been measured, and recommends nothing."""
    render_site([], RUN, tmp_path)
    assert "Nothing has been measured yet." in (tmp_path / "index.html").read_text("utf-8")
    constraints = (tmp_path / "constraints.txt").read_text("utf-8")
    assert all(line.startswith("#") for line in constraints.splitlines())


def test_a_report_of_the_bug_report_s_form(tmp_path: Path) -> None:
    """Whoever knows the report recognises its three lines at the case's anchor."""
    render_site([record("1.0", "prefix_lost")], RUN, tmp_path)
    text = (tmp_path / "releases/1.0/index.html").read_text("utf-8")
    assert (
        "last generation call: ([[32], [59]], [[8], [8]], None)\n"
        "generated next token: [2, 26]\n"
        "uncached full-prefix next token: [32, 26]"
    ) in text


class TestEvidence:
    """The page of a release."""

    def test_an_error_is_told_beside_its_tolerance(self, answer: Answer) -> None:
        """Within it, or beyond."""
        right, wrong = (page(answer, f"releases/{name}/index.html") for name in ("1.6", "1.2"))
        anchor = "phi3-left-padded-eager-cpu-float32-py3.11-torch2.13.0"
        told = [one.find(id=anchor) for one in (right, wrong)]
        assert told[0] is not None
        assert told[1] is not None
        assert "3.2e-07, within the tolerance of 1.0e-04" in told[0].get_text()
        assert "0.83, beyond the tolerance of 1.0e-04" in told[1].get_text()

    def test_each_run_of_a_cell_is_told_once(self, tmp_path: Path) -> None:
        """With its packages; a case leads to the run that measured it."""
        later = provenance(started_at="2026-11-29T12:00:00Z", packages="key")
        run = msgspec.structs.replace(RUN, packages={"key": ("numpy==2.0", "torch==2.13.0")})
        records = [record(), record(scenario="left-padded", provenance=later)]
        answer = render_site(records, run, tmp_path)
        soup = page(answer, "releases/1.0.0/index.html")
        cells = soup.select("#cells .case")
        assert [cell["id"] for cell in cells] == [
            "cell-3.11-2.13.0",
            "cell-3.11-2.13.0-2",
        ]
        assert "numpy==2.0" in cells[1].get_text()
        case = soup.find(id="phi3-left-padded-eager-cpu-float32-py3.11-torch2.13.0")
        assert case is not None
        assert case.select_one("a[href='#cell-3.11-2.13.0-2']")


class TestFeed:
    """Changes as Atom."""

    def test_an_entry_for_every_change_with_an_id_that_stays(self, tmp_path: Path) -> None:
        """A later run keeps the entries of the one before, under the same ids."""
        one, two, three = (tmp_path / name for name in ("one", "two", "three"))
        later = msgspec.structs.replace(RUN, generated_at="2026-12-01T04:05:06Z")
        latest = msgspec.structs.replace(RUN, generated_at="2026-12-02T04:05:06Z")
        render_site(history({"1.0": "prefix_lost"}), RUN, one)
        render_site(history({"1.0": "prefix_lost", "1.1": "ok"}), later, two, previous=one)
        outcomes = {"1.0": "prefix_lost", "1.1": "ok", "1.2": "crash"}
        render_site(history(outcomes), latest, three, previous=two / "results.json")
        entries = [self.entries(site) for site in (one, two, three)]
        assert [len(found) for found in entries] == [0, 1, 2]
        assert entries[2][1] == entries[1][0]
        assert len({entry["id"] for entry in entries[2]}) == 2
        assert "1.2" in entries[2][0]["title"]

    @staticmethod
    def entries(site: Path) -> list[dict[str, str]]:
        """The entries of a feed; checks what RFC 4287 requires of it."""
        root = ET.fromstring((site / "feed.xml").read_bytes())
        assert root.tag == f"{ATOM}feed"
        for parent in (root, *root.iter(f"{ATOM}entry")):
            for tag in ("id", "title", "updated"):
                (element,) = parent.findall(f"{ATOM}{tag}")
                assert element.text
            assert parent.findall(f"{ATOM}link[@rel='alternate']")
        assert root.findall(f"{ATOM}author/{ATOM}name")
        return [
            {tag: entry.findtext(f"{ATOM}{tag}") or "" for tag in ("id", "title", "updated")}
            for entry in root.iter(f"{ATOM}entry")
        ]


def test_earlier_runs_are_kept_and_linked(tmp_path: Path) -> None:
    """The report of a run stays where it was when the next one is published."""
    one, two = tmp_path / "one", tmp_path / "two"
    later = msgspec.structs.replace(RUN, generated_at="2026-12-01T04:05:06Z")
    render_site(history({"1.0": "prefix_lost"}), RUN, one)
    render_site(history({"1.0": "ok"}), later, two, previous=one)
    index = BeautifulSoup((two / "index.html").read_text("utf-8"), "html.parser")
    hrefs = [str(link["href"]) for link in index.select("a[href]")]
    (href,) = [h for h in hrefs if h.startswith("runs/")]
    assert (two / href).read_bytes() == (one / "report.md").read_bytes()
    assert href == "runs/2026-11-30t040506z/report.md"


def test_of_very_many_changes_the_gravest_are_told(tmp_path: Path) -> None:
    """A ledger that came at once must not make the first page long; the rest is counted."""
    many = history({f"1.{number}.0": "ok" for number in range(MOST_CHANGES + 9)})
    render_site([record("1.0.0", "prefix_lost")], RUN, tmp_path / "before")
    later = msgspec.structs.replace(RUN, generated_at="2026-12-01T04:05:06Z")
    answer = render_site(many, later, tmp_path / "site", previous=tmp_path / "before")
    assert answer.view.changes is not None
    assert (len(answer.view.changes), answer.view.more_changes) == (MOST_CHANGES, 9)
    assert answer.view.changes[0].release == "1.0.0"
    for name in ("index.html", "report.md"):
        assert "And 9 more, of less weight" in (tmp_path / "site" / name).read_text("utf-8")


@pytest.mark.parametrize("content", [b"", b"{", b'{"schema_version":99}', b"\xff\xfe"])
def test_a_damaged_former_report_is_said_and_passed_over(tmp_path: Path, content: bytes) -> None:
    """The report is made all the same, and does not claim that nothing changed."""
    (tmp_path / "results.json").write_bytes(content)
    answer = render_site([record()], RUN, tmp_path, previous=tmp_path)
    assert answer.view.changes is None
    assert "cannot be read" in answer.view.problems[0]


def test_a_report_in_another_form_is_not_guessed_at(tmp_path: Path) -> None:
    """Results of a later form are passed over, even if they look alike."""
    render_site([record()], RUN, tmp_path)
    path = tmp_path / "results.json"
    path.write_bytes(path.read_bytes().replace(b'"schema_version":1', b'"schema_version":2', 1))
    answer = render_site([record()], RUN, tmp_path, previous=tmp_path)
    assert answer.view.changes is None
    assert "it has form 2" in answer.view.problems[0]


def test_records_of_another_revision_are_counted_as_left_out(tmp_path: Path) -> None:
    """They are in no verdict, and the page says how many there are."""
    old = record("1.0", "crash", provenance=provenance(check_revision="f" * 12))
    answer = render_site([old, record("1.1")], RUN, tmp_path)
    assert "1 record made by another revision of the checks is left out." in answer.view.limits
    assert answer.view.headline == "Not affected: 1.1"
