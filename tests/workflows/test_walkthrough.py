"""Scheduled runs, one after the other, as the platform would run them; and one by hand."""

from __future__ import annotations

import gzip
import json
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from matrix.index_settings import settings_here
from reports.results import PastRun
from tests.fixture_index import PACKAGE, FixtureRelease, build_wheel, serving, write_index
from tests.pipeline.harness import grid_text
from tests.workflows.platform import Execution, Platform

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.slow

TEXTS = Path(__file__).parent / "texts"
VARIABLES = {
    "RELEASES": "all",
    "SCENARIOS": "below-boundary decode-crossing",
    "SECONDS_PER_JOB": "60",
    "SITE_URL": "https://page.example/",
}
FIRST = (
    FixtureRelease(version="1.0.0"),
    FixtureRelease(version="1.1.0", fault="disagrees"),
    FixtureRelease(version="1.2.0"),
)
FINE = FixtureRelease(version="1.3.0")
BROKEN = FixtureRelease(version="1.4.0", fault="disagrees")
AGAIN = FixtureRelease(version="1.5.0")
BUILDS_NOT = FixtureRelease(version="1.6.0", builds=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class After:
    """What there is to see after a run."""

    run: Execution
    issues: list[dict[str, Any]]
    results: dict[str, Any]
    kept: str

    @property
    def plan(self) -> list[dict[str, Any]]:
        """The jobs that it planned."""
        jobs: list[dict[str, Any]] = json.loads(self.run.jobs["plan"].outputs["jobs"])
        return jobs


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """All the runs, by what happened before each."""

    platform: Platform
    first: After
    nothing_new: After
    fine: After
    broken: After
    told_again: After
    unreachable: After
    lost: After
    rerun: After
    no_index: After
    tried: After


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory, runtimes: Path) -> Iterator[Story]:
    """Runs them all, once."""
    folder = tmp_path_factory.mktemp("platform")
    index = folder / "index"
    index.mkdir()
    grid = folder / "grid.toml"
    nowhere = (folder / "nowhere.git").as_uri()
    grid.write_text(
        grid_text(package=PACKAGE, since="1.0.0", repository=nowhere, seconds=60),
        encoding="utf-8",
    )
    with serving(index) as address:
        settings = settings_here()
        environ = {**settings, "UV_INDEX_STRATEGY": "unsafe-best-match", "MATRIX_GRID": str(grid)}
        platform = Platform(folder=folder, runtimes=runtimes, environ=environ)

        def publish(*releases: FixtureRelease) -> None:
            # At an address of its own each time: uv trusts what it has read of one for minutes.
            name = str(len(list(index.glob("*"))))
            write_index(index / name, releases)
            own = f"{address}{name}/"
            environ["UV_INDEX"] = " ".join(filter(None, [settings.get("UV_INDEX"), own]))

        def run(lose: frozenset[str] = frozenset(), **variables: str) -> After:
            done = platform.run("matrix.yml", variables=VARIABLES | variables, lose=lose)
            return look(platform, done)

        publish(*FIRST)
        first = run()
        nothing_new = run()
        publish(*FIRST, FINE)
        fine = run()
        publish(*FIRST, FINE, BROKEN)
        broken = run()
        platform.rerun("matrix.yml", broken.run, "watch")
        told_again = look(platform, broken.run)
        unreachable = run(RELEASES="all main")
        publish(*FIRST, FINE, BROKEN, AGAIN, BUILDS_NOT)
        lost = run(lose=frozenset({"cpu-1"}), SECONDS_PER_JOB="2.5")
        rerun = run()
        settled = environ["UV_INDEX"]
        environ["UV_INDEX"] = "http://127.0.0.1:9/"
        no_index = run()
        environ["UV_INDEX"] = settled
        wheel = build_wheel(folder, FixtureRelease(version="9.0.0", fault="disagrees"))
        inputs = {
            "releases": f"path:{wheel}",
            "scenarios": "below-boundary decode-crossing",
            "runtime": "3.11/2.13.0",
        }
        by_hand = platform.run("try.yml", event="workflow_dispatch", inputs=inputs)
        tried = look(platform, by_hand)
        yield Story(
            platform=platform,
            first=first,
            nothing_new=nothing_new,
            fine=fine,
            broken=broken,
            told_again=told_again,
            unreachable=unreachable,
            lost=lost,
            rerun=rerun,
            no_index=no_index,
            tried=tried,
        )


def look(platform: Platform, run: Execution) -> After:
    """What there is to see now."""
    page = platform.page / "results.json"
    kept = subprocess.run(
        ["git", "rev-parse", "--verify", "--quiet", "data"],
        cwd=platform.repository,
        capture_output=True,
        text=True,
        check=False,
    ).stdout.strip()
    assert page.exists(), run.log
    return After(
        run=run,
        issues=json.loads(json.dumps(platform.issues)),
        results=json.loads(page.read_bytes()),
        kept=kept,
    )


ALL_WELL = {
    "plan": "success",
    "cells": "success",
    "report": "success",
    "publish": "success",
    "keep": "success",
    "watch": "success",
    "awake": "success",
    "gate": "success",
}


def job(number: int, shard: str, cells: int) -> dict[str, Any]:
    """A job as the plan should cut it: four cases a cell, two seconds, and 0.15 for each."""
    return {
        "id": f"cpu-{number}",
        "device": "cpu",
        "runtime": "3.11/2.13.0",
        "shard": shard,
        "cells": cells,
        "cases": 4 * cells,
        "seconds": round(2.6 * cells, 1),
    }


def test_the_first_run_measures_everything_and_tells_nobody(story: Story) -> None:
    """A first report is its own news: what it found is no change."""
    after = story.first
    assert after.run.results == ALL_WELL, after.run.log
    assert after.plan == [job(1, "1/1", 3)]
    assert [one["statement"] for one in after.results["statements"]] == [
        "not_affected",
        "affected",
        "fixed",
    ]
    assert after.issues == []
    assert after.kept


def test_with_nothing_new_a_run_ends_after_the_plan(story: Story) -> None:
    """It costs a minute, and changes neither page nor branch."""
    after = story.nothing_new
    skipped = dict.fromkeys(("cells", "report", "publish", "keep", "watch"), "skipped")
    assert after.run.results == ALL_WELL | skipped, after.run.log
    assert after.plan == []
    assert after.run.jobs["plan"].summary == "## Plan\n\nNothing to run: all 3 cells are known.\n\n"
    assert after.kept == story.first.kept
    assert after.results == story.first.results


def test_a_new_release_that_is_fine_is_one_cell_and_no_issue(story: Story) -> None:
    """Only what is new is measured, and the page says what it does."""
    after = story.fine
    assert after.run.results == ALL_WELL, after.run.log
    assert after.plan == [job(1, "1/1", 1)]
    assert [change["text"] for change in after.results["changes"]] == [
        "transformers 1.3.0, Phi-3: fixed, new in this report."
    ]
    assert after.issues == []


def test_a_new_release_that_is_broken_is_told_once_and_turns_the_run_red(story: Story) -> None:
    """The page is published first; the run is red by its gate alone."""
    after = story.broken
    assert after.run.results == ALL_WELL | {"gate": "failure"}, after.run.log
    assert "::error::New regression: transformers 1.4.0 loses the prefix (Phi-3)\n" in (
        after.run.jobs["gate"].log
    )
    assert [one["title"] for one in after.issues] == ["transformers 1.4.0 loses the prefix (Phi-3)"]
    assert len(after.results["runs"]) == 3
    assert_text("issue-affected.md", after.issues[0]["body"])


def test_earlier_runs_stay_at_their_links(story: Story) -> None:
    """What was published once can be read later, as it was."""
    runs = msgspec.convert(story.rerun.results["runs"], tuple[PastRun, ...])
    published = (story.rerun, story.lost, story.unreachable, story.broken, story.fine, story.first)
    assert len(runs) == len(published)
    for past, after in zip(runs, published, strict=True):
        for path in past.files:
            assert (story.platform.page / path).is_file()
        kept = json.loads(gzip.decompress((story.platform.page / past.files[-1]).read_bytes()))
        assert kept == after.results


def test_telling_twice_opens_no_second_issue(story: Story) -> None:
    """The job can be run again: what it wanted is there."""
    assert story.told_again.run.jobs["watch"].result == "success"
    assert story.told_again.issues == story.broken.issues


def test_an_unreachable_ref_is_told_and_the_rest_goes_on(story: Story) -> None:
    """It is trouble, and no finding: nothing is said of what could not be seen."""
    after = story.unreachable
    assert after.run.results == ALL_WELL | {"cells": "skipped", "gate": "failure"}, after.run.log
    assert after.plan == []
    [problem] = after.results["problems"]
    assert problem.startswith("main: unreachable: ")
    on_main = {
        record["reason"]
        for record in after.results["records"]
        if record["ref"] == "main" and record["device"] == "cpu"
    }
    assert on_main == {"unreachable"}
    assert "## Trouble\n\n- main: unreachable: " in after.run.jobs["report"].summary
    assert after.issues == story.broken.issues


def test_a_lost_job_is_named_and_nothing_is_made_up_for_it(story: Story) -> None:
    """Its cells are not run, the others count, and the run is red."""
    after = story.lost
    assert after.run.results == ALL_WELL | {"cells": "failure", "gate": "failure"}, after.run.log
    assert after.plan == [job(1, "1/2", 1), job(2, "2/2", 1)]
    named = "Job cpu-1 (3.11/2.13.0, shard 1/2, 1 cells) did not deliver."
    assert f"::error::{named}" in after.run.jobs["gate"].log
    assert f"{named}\n" in after.run.jobs["report"].summary.replace("\\", "")
    statuses = {
        record["transformers"]: (record["status"], record["reason"])
        for record in after.results["records"]
        if record["device"] == "cpu"
    }
    assert statuses["1.5.0"] == ("not_run", "not_selected")
    assert statuses["1.6.0"] == ("error", "install_failed")


def test_a_release_that_cannot_be_tested_is_told(story: Story) -> None:
    """With the end of the log, and without turning the run red by itself."""
    [told] = [one for one in story.lost.issues if "1.6.0" in one["title"]]
    assert told["title"] == "transformers 1.6.0 cannot be tested: could not be installed"
    assert_text("issue-untestable.md", told["body"])
    assert "New regression" not in story.lost.run.jobs["gate"].log


def test_the_next_run_makes_up_for_what_was_lost(story: Story) -> None:
    """Lost cells and failed ones are planned again, and nothing else is."""
    after = story.rerun
    assert after.run.results == ALL_WELL, after.run.log
    assert [(one["shard"], one["cells"]) for one in after.plan] == [("1/1", 2)]
    releases = {
        cell["release"]["version"]
        for cell in json.loads((after.run.artifacts / "plan" / "plan.json").read_bytes())["cells"]
    }
    assert releases == {"1.5.0", "1.6.0"}


def test_the_end_of_a_defect_is_told_in_its_issue_too(story: Story) -> None:
    """A new issue for the fix, a remark and a new text for what it fixes."""
    after = story.rerun
    assert [one["title"] for one in after.issues] == [
        "transformers 1.4.0 loses the prefix (Phi-3)",
        "transformers 1.6.0 cannot be tested: could not be installed",
        "transformers 1.5.0: prefix lost is fixed (Phi-3)",
    ]
    affected, _, fixed = after.issues
    remark = "It is over: transformers 1.5.0: prefix lost is fixed (Phi-3)."
    [comment] = affected["comments"]
    assert comment == f"{remark} The scheduled run has opened an issue for that."
    assert "| 1.3.0 | 1.4.0 | 1.5.0 |" in affected["body"]
    assert_text("issue-fixed.md", fixed["body"])


def test_without_the_index_nothing_is_planned_and_the_run_is_red(story: Story) -> None:
    """What is published stays as it is."""
    after = story.no_index
    skipped = dict.fromkeys(("cells", "report", "publish", "keep", "watch"), "skipped")
    expected = ALL_WELL | skipped | {"plan": "failure", "gate": "failure"}
    assert after.run.results == expected, after.run.log
    assert "::error::The job plan ended in failure." in after.run.jobs["gate"].log
    assert (after.results, after.issues, after.kept) == (
        story.rerun.results,
        story.rerun.issues,
        story.rerun.kept,
    )


def test_what_is_tried_by_hand_is_shown_and_kept_nowhere(story: Story) -> None:
    """Somebody else's code gets a summary and an artifact, and changes nothing."""
    after = story.tried
    assert after.run.results == {"try": "success"}, after.run.log
    assert "affected (prefix lost: decode-crossing)" in after.run.jobs["try"].summary
    shown = json.loads((after.run.artifacts / "site" / "results.json").read_bytes())
    assert {one["source"] for one in shown["records"] if one["status"] == "affected"} == {"path"}
    assert (after.results, after.issues, after.kept) == (
        story.rerun.results,
        story.rerun.issues,
        story.rerun.kept,
    )


def test_the_summary_of_a_job_is_the_report_with_what_needs_a_person_first(story: Story) -> None:
    """Who opens the run sees at once what it found."""
    report = story.platform.folder / "runs" / "4" / "artifacts" / "github-pages" / "report.md"
    assert story.broken.run.jobs["report"].summary == (
        "## New findings\n\n- transformers 1.4.0 loses the prefix (Phi-3)\n\n"
        + report.read_text(encoding="utf-8")
    )


def test_no_token_is_seen_by_what_is_measured(story: Story) -> None:
    """The jobs that run releases have none in their environment, nor in their checkout."""
    for after in (story.first, story.broken):
        assert "of-this-job-alone" not in after.run.jobs["cells"].log


def assert_text(name: str, text: str) -> None:
    """`text` is the committed one, but for times, numbers and what is specific to a machine."""
    text = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "TIME", text)
    text = re.sub(r"\b\d\.\d+e-\d+\b|\b0\.\d+\b", "NUMBER", text)
    text = re.sub(r"(?<=Python 3\.11)\.\d+|(?<=2\.13\.0)\+\w+", "", text)
    text = re.sub(r"(?s)(## End of the log\n\n```\n).*(\n```)", r"\1LOG\2", text)
    expected = TEXTS / name
    if not expected.exists():
        expected.parent.mkdir(exist_ok=True)
        expected.write_text(text, encoding="utf-8")
        pytest.fail(f"{expected} was not there: it is now; read it")
    assert text == expected.read_text(encoding="utf-8")
