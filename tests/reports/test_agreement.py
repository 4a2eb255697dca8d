"""Every output says the same: the page, the Markdown, the JSON, the CSV, OSV and the rest."""

from __future__ import annotations

import csv
import json
import re
from io import StringIO
from typing import TYPE_CHECKING

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from tests.reports.pages import page

if TYPE_CHECKING:
    from reports.site import Answer


class TestAllSayTheSame:
    """The page, the Markdown, the JSON, the CSV and the rest are views of one thing."""

    def test_the_summary(self, answer: Answer) -> None:
        """The same sentences stand in the page, in its description, and in both files."""
        results = json.loads((answer.site / "results.json").read_bytes())
        index = page(answer)
        assert results["summary"] == answer.summary
        description = index.find("meta", attrs={"name": "description"})
        assert description is not None
        assert description["content"] == answer.summary
        shown = index.select_one("section.answer")
        assert shown is not None
        markdown = plain_markdown(answer)
        for sentence in (*answer.view.answer, answer.view.measured):
            assert sentence in shown.get_text()
            assert sentence in markdown

    def test_the_headline(self, answer: Answer) -> None:
        """Title, heading, badge and the first line of the Markdown are one answer."""
        index = page(answer)
        assert index.title is not None
        assert answer.view.headline in index.title.get_text()
        heading = index.h1
        assert heading is not None
        assert heading.get_text() == answer.view.headline
        badge = json.loads((answer.site / "badge.json").read_bytes())
        assert badge["message"].lower() == answer.view.headline.lower()
        first_line = (answer.site / "report.md").read_text("utf-8").splitlines()[0]
        assert first_line.startswith(f"**{answer.view.headline}**")

    def test_the_verdicts(self, answer: Answer) -> None:
        """Each release's verdict is the same in the page, the Markdown and the JSON."""
        results = json.loads((answer.site / "results.json").read_bytes())
        said = {
            (s["ref"] or s["transformers"], s["model"]): s["statement"]
            for s in results["statements"]
        }
        rows = page(answer).select("tr[data-release]")
        shown = {
            (row["data-release"], {"Phi-3": "phi3", "PhiMoE": "phimoe"}[name]): v["data-verdict"]
            for row in rows
            for v in row.select(".verdict")
            for name in [v.get_text().split(":")[0]]
        }
        assert shown == said
        markdown = (answer.site / "report.md").read_text("utf-8")
        for (release, model), statement in said.items():
            (line,) = re.findall(rf"^\| {re.escape(release)} .*$", markdown, re.MULTILINE)[-1:]
            title = {"phi3": "Phi-3", "phimoe": "PhiMoE"}[model]
            assert f"{title}: " in line
            word = statement.replace("_", " ").replace("under investigation", "not decided")
            assert re.search(rf"{title}: . {word}", line)

    def test_the_records(self, answer: Answer) -> None:
        """JSON and CSV hold the same records, and each has its anchor on its release's page."""
        results = json.loads((answer.site / "results.json").read_bytes())
        rows = list(csv.DictReader(StringIO((answer.site / "results.csv").read_text("utf-8"))))
        keys = ("transformers", "model", "scenario", "attention", "device", "status")
        assert [[row[key] for key in keys] for row in rows] == [
            [one[key] for key in keys] for one in results["records"]
        ]
        for one in results["records"]:
            name = one["ref"] or one["transformers"]
            anchor = "-".join(
                (
                    *(one[key] for key in ("model", "scenario", "attention", "device", "dtype")),
                    "py3.11",
                    "torch2.13.0",
                )
            )
            evidence = page(answer, f"releases/{name}/index.html").find(id=anchor)
            assert evidence is not None
            assert one["status"].replace("_", " ") in evidence.get_text()

    def test_the_intervals(self, answer: Answer) -> None:
        """What the JSON calls an interval stands in the table of the page, word for word."""
        results = json.loads((answer.site / "results.json").read_bytes())
        shown = [
            [cell.get_text(" ", strip=True) for cell in row.find_all(["th", "td"])]
            for row in page(answer).select(".story tbody tr")
        ]
        for interval in results["intervals"]:
            if interval["model"] != "phi3":
                continue
            first, last = interval["first"], interval["last"]
            releases = first if first == last else f"{first} to {last}"
            assert any(
                interval["status"] in row[0]
                and row[1].startswith(releases)
                and row[3] == (interval["after"] or "none tested")
                and row[4] == (interval["before"] or "none tested")
                for row in shown
            )

    def test_osv_and_constraints(self, answer: Answer) -> None:
        """OSV's affected versions and the constraint never meet; both follow the statements."""
        results = json.loads((answer.site / "results.json").read_bytes())
        osv = json.loads((answer.site / "osv.json").read_bytes())
        wrong = {
            s["transformers"]
            for s in results["statements"]
            if s["model"] == "phi3" and s["statement"] == "affected"
        }
        assert set(osv["affected"][0]["versions"]) == wrong
        lines = (answer.site / "constraints.txt").read_text("utf-8").splitlines()
        (constraint,) = [line for line in lines if line and not line.startswith("#")]
        allowed = SpecifierSet(constraint.removeprefix("transformers"))
        assert not any(Version(name) in allowed for name in wrong)
        code = page(answer).select_one(".pin pre code")
        assert code is not None
        assert code.get_text() == constraint

    def test_the_stable_paths(self, answer: Answer) -> None:
        """Under v1/ lies the same as at the top."""
        for path in sorted((answer.site / "v1").iterdir()):
            assert path.read_bytes() == (answer.site / path.name).read_bytes()


def plain_markdown(answer: Answer) -> str:
    """The Markdown without what escaping adds."""
    text = (answer.site / "report.md").read_text("utf-8")
    return text.replace("\u2060", "").replace("\\", "")
