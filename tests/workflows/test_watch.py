"""What is a finding, what is new of it, and what becomes of it on the tracker."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from matrix.records import Evidence, Status
from reports import watch
from reports.jobsummary import CUT, summary
from reports.results import Counts, Results
from reports.site import render_site
from reports.watch_findings import Finding, Kind, find
from reports.watch_issues import Action, Known, Verb, decide
from reports.watch_issues import Finding as Told
from reports.watch_text import Links, issue, marker
from tests.reports.factory import REVISION, RUN, history, main_branch, provenance, record
from tests.reports.strategies import histories
from tests.reports.test_safety import HOSTILE, MARK, hostile_records

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from matrix.records import Record

OTHER = "f" * 12
"""Another revision of the checks."""

LOST = "prefix_lost"
LINKS = Links(site="https://page.example/", repository="https://forge.example/a/b")


def results(records: Sequence[Record], revision: str = REVISION) -> Results:
    """As much of a results.json as findings come from."""
    sample = {
        "schema_version": 1,
        "generated_at": "2026-11-30T04:05:06Z",
        "check_revision": revision,
        "harness_commit": None,
        "summary": "",
        "coverage": dict.fromkeys(Counts.__struct_fields__, 0),
        "problems": [],
        "records": msgspec.to_builtins(records),
        "intervals": [],
        "statements": [],
        "changes": [],
        "runs": [],
    }
    return msgspec.convert(sample, Results)


def told(before: Sequence[Record] | None, now: Sequence[Record], **options: Any) -> list[str]:
    """The new findings: ``affected 1.1.0 prefix_lost``."""
    earlier = None if before is None else results(before, options.get("earlier", REVISION))
    return [_name(one) for one in find(earlier, results(now)) if one.new]


def _name(finding: Finding) -> str:
    return " ".join(filter(None, (finding.kind, finding.release, finding.defect)))


GOOD = {"1.0.0": "ok", "1.1.0": "ok"}


@pytest.mark.parametrize(
    ("before", "now", "new"),
    [
        (None, {**GOOD, "1.2.0": LOST}, []),
        (GOOD, GOOD, []),
        (GOOD, {**GOOD, "1.2.0": "ok"}, []),
        (GOOD, {**GOOD, "1.2.0": LOST}, ["affected 1.2.0 prefix_lost"]),
        ({**GOOD, "1.2.0": LOST}, {**GOOD, "1.2.0": LOST, "1.3.0": LOST}, []),
        (
            {**GOOD, "1.2.0": LOST},
            {**GOOD, "1.2.0": LOST, "1.3.0": "stale_keys"},
            ["affected 1.3.0 stale_keys"],
        ),
        (
            {**GOOD, "1.2.0": LOST},
            {**GOOD, "1.2.0": LOST, "1.3.0": "ok"},
            ["fixed 1.3.0 prefix_lost"],
        ),
        (
            {**GOOD, "1.2.0": LOST, "1.4.0": LOST},
            {**GOOD, "1.2.0": LOST, "1.3.0": "ok", "1.4.0": LOST},
            ["fixed 1.3.0 prefix_lost"],
        ),
        ({**GOOD, "1.3.0": LOST}, {**GOOD, "1.2.0": LOST, "1.3.0": LOST}, []),
        (
            {**GOOD, "1.2.0": "not_selected"},
            {**GOOD, "1.2.0": LOST},
            ["affected 1.2.0 prefix_lost"],
        ),
        (GOOD, {**GOOD, "1.2.0": "install_failed"}, ["untestable 1.2.0"]),
        (GOOD, {**GOOD, "1.2.0": "no_model"}, []),
        (GOOD, {**GOOD, "1.2.0": "not_selected"}, []),
        ({"1.0.0": LOST}, {"1.0.0": LOST, "1.1.0": LOST}, []),
    ],
    ids=[
        "a first report is its own news",
        "nothing new",
        "a new release that is fine",
        "a new release that is broken",
        "one more that is broken like the one before",
        "one that is broken in another way",
        "the first that is right again",
        "a patch in between that is right: what comes behind is no news",
        "a boundary made exact",
        "a lost job made up for",
        "a release that cannot be installed",
        "a release without the model",
        "a job was lost",
        "wrong from the first release on",
    ],
)
def test_what_is_new(before: dict[str, str] | None, now: dict[str, str], new: list[str]) -> None:
    """A finding is told when it could first be known, and not again."""
    earlier = None if before is None else history(before)
    assert told(earlier, history(now)) == new


def test_one_defect_in_one_release_is_one_finding() -> None:
    """However many cases and runtimes it shows on; each defect has its own."""
    more = {"attention": "sdpa"}, {"scenario": "left-padded"}, {"torch": "2.9.1"}
    before = history(GOOD) + [one for change in more for one in history(GOOD, **change)]
    now = [*before, record("1.2.0", LOST), *(record("1.2.0", LOST, **change) for change in more)]
    [finding] = [one for one in find(results(before), results(now)) if one.new]
    assert len(finding.sightings) == 4
    assert finding.regression


def test_a_runtime_that_was_not_measured_before_is_no_news() -> None:
    """Its past was as it is; only a release that is new to all is news on it."""
    past = {**GOOD, "1.2.0": LOST, "1.3.0": "ok"}
    added = history(past, torch="2.9.1")
    assert told(history(past), [*history(past), *added]) == []
    new = [record("1.4.0", LOST, torch="2.9.1")]
    assert told(history(past), [*history(past), *added, *new]) == ["affected 1.4.0 prefix_lost"]


def test_other_checks_make_no_news_of_old_releases() -> None:
    """What they see for the first time was there before; a new release still counts."""
    old = history(GOOD, provenance=provenance(check_revision=OTHER))
    now = {"1.0.0": "ok", "1.1.0": LOST}
    assert told(old, history(now), earlier=OTHER) == []
    now["1.2.0"] = "stale_keys"
    assert told(old, history(now), earlier=OTHER) == ["affected 1.2.0 stale_keys"]


def test_a_way_of_use_that_begins_wrong_is_told_but_is_no_regression() -> None:
    """Nothing that worked has stopped."""
    now = [*history(GOOD), record("1.2.0"), record("1.2.0", LOST, scenario="static-cache")]
    [finding] = [one for one in find(results(history(GOOD)), results(now)) if one.new]
    assert (finding.kind, finding.regression) == (Kind.AFFECTED, False)


def test_a_ref_is_compared_with_the_newest_release_and_with_itself() -> None:
    """A fix on it, its loss, and a defect that no release has."""
    broken = history({**GOOD, "1.2.0": LOST})
    assert told([*broken, main_branch(LOST)], [*broken, main_branch()]) == [
        "fixed main prefix_lost"
    ]
    assert told([*broken, main_branch()], [*broken, main_branch(LOST)]) == [
        "affected main prefix_lost"
    ]
    assert told([*history(GOOD), main_branch()], [*history(GOOD), main_branch("wrong_mask")]) == [
        "affected main wrong_mask"
    ]
    assert told([*broken, main_branch(LOST)], [*broken, main_branch(LOST)]) == []
    assert told(history(GOOD), [*history(GOOD), main_branch()]) == []


def test_a_ref_without_an_answer_before_is_compared_with_the_newest_release() -> None:
    """A case that failed yesterday is told; one that is measured for the first time is not."""
    both = [*history(GOOD), *history(GOOD, attention="sdpa")]
    failed = main_branch("timeout", attention="sdpa")
    now = [*both, main_branch(), main_branch(LOST, attention="sdpa")]
    assert told([*both, main_branch(), failed], now) == ["affected main prefix_lost"]
    assert told([*history(GOOD), main_branch()], now) == []


def test_what_other_checks_see_in_the_newest_release_too_is_no_news_of_a_ref() -> None:
    """It was there before. What only the ref has is news."""
    of_old = provenance(check_revision=OTHER)
    before = [*history(GOOD, provenance=of_old), main_branch(provenance=of_old)]
    everywhere = [record("1.0.0"), record("1.1.0", LOST), main_branch(LOST)]
    assert told(before, everywhere, earlier=OTHER) == []
    there_alone = [*history(GOOD), main_branch(LOST)]
    assert told(before, there_alone, earlier=OTHER) == ["affected main prefix_lost"]


def test_a_device_that_is_not_there_makes_no_release_testable() -> None:
    """What was not run says nothing, in neither direction."""
    failed = [record("1.2.0", "install_failed"), record("1.2.0", "no_device", device="cuda")]
    assert told(history(GOOD), [*history(GOOD), *failed]) == ["untestable 1.2.0"]


def test_a_control_that_runs_is_no_answer() -> None:
    """Where every crossing fails the check is broken by the release, and somebody must look."""
    control = record("1.2.0", scenario="below-boundary")
    for outcome, told_as in (
        ("check_error", "cannot be tested: the check itself failed"),
        ("inconclusive", "cannot be tested: no measurement was conclusive"),
    ):
        now = [*history(GOOD), control, record("1.2.0", outcome)]
        [one] = [one for one in find(results(history(GOOD)), results(now)) if one.new]
        assert one.kind is Kind.UNTESTABLE
        assert issue(one, LINKS).title == f"transformers 1.2.0 {told_as}"
    half = [*history(GOOD), record("1.2.0"), record("1.2.0", "timeout", scenario="left-padded")]
    assert told(history(GOOD), half) == []


@given(records=histories())
def test_the_same_run_twice_has_no_news(records: list[Record]) -> None:
    """And its findings have an id each, which does not depend on the order of records."""
    found = find(results(records), results(records[::-1]))
    assert not any(one.new for one in found)
    assert len({one.id for one in found}) == len(found)
    assert [one.id for one in find(None, results(records))] == [one.id for one in found]


def finding(**changes: Any) -> Told:
    """A new finding, as it comes to the tracker."""
    defaults = Told(
        id="a" * 12,
        title="T",
        body=f"{marker('a' * 12)}\n\nText\n",
        new=True,
        recurs=False,
        ends=(),
    )
    return replace(defaults, **changes)


def there(number: int = 7, *, state: bool = True, of: str = "a", text: str = "Text") -> Known:
    """An issue that is there."""
    return Known(number=number, open=state, body=f"{marker(of * 12)}\n\n{text}\n")


def test_a_new_finding_opens_an_issue_once() -> None:
    """What it opened is found again, also with the line ends that a tracker gives it."""
    one = finding()
    assert decide([one], []) == (Action(verb=Verb.OPEN, title="T", body=one.body),)
    assert decide([one], [Known(number=1, open=True, body=one.body.replace("\n", "\r\n"))]) == ()


def test_an_open_issue_is_brought_up_to_date_and_never_doubled() -> None:
    """Whether the finding is new or not."""
    for new in (True, False):
        changed = finding(new=new)
        assert decide([changed], [there(text="Older")]) == (
            Action(verb=Verb.UPDATE, number=7, body=changed.body),
        )


def test_what_is_not_new_opens_nothing() -> None:
    """Nobody is told of the past."""
    assert decide([finding(new=False)], []) == ()


def test_a_closed_issue_stays_closed() -> None:
    """Somebody has seen it. Only what has come up anew on a ref that moves opens it again."""
    assert decide([finding()], [there(state=False, text="Older")]) == ()
    anew = finding(recurs=True)
    assert decide([anew], [there(state=False, text="Older")]) == (
        Action(verb=Verb.REOPEN, number=7, body=anew.body),
    )
    assert decide([anew], [there(state=False)]) == ()
    assert decide([finding(recurs=True, new=False)], [there(state=False, text="Older")]) == ()


def test_an_issue_tells_what_helps_without_another_release() -> None:
    """Whoever comes by it may have to live with that release."""
    evidence = Evidence(workarounds={"second-call": Status.OK, "no-cache": Status.AFFECTED})
    now = [*history(GOOD), record("1.2.0", LOST, evidence=evidence)]
    [one] = [f for f in find(results(history(GOOD)), results(now)) if f.new]
    body = issue(one, LINKS).body
    assert "Without another release, tried on it: Generate up to O" in body
    assert "✕ affected" in body


def test_the_end_of_a_finding_is_remarked_in_its_open_issue() -> None:
    """Once: when the issue of the fix is opened."""
    fix = finding(id="b" * 12, title="F", body=f"{marker('b' * 12)}\n", ends=("a" * 12,))
    opened, remark = decide([fix], [there()])
    assert opened.verb is Verb.OPEN
    assert (remark.verb, remark.number) == (Verb.COMMENT, 7)
    assert decide([fix], [there(), Known(number=8, open=True, body=fix.body)]) == ()
    assert len(decide([fix], [there(state=False)])) == 1


def test_an_open_issue_outranks_a_closed_one_of_the_same_finding() -> None:
    """And of two open ones the older is kept up to date."""
    known = [there(1, state=False), there(9, text="Older"), there(4, text="Older")]
    [action] = decide([finding()], known)
    assert action.number == 4


def test_only_the_first_line_says_what_an_issue_is_about() -> None:
    """A log that quotes the line of another finding does not take its place."""
    quoting = Known(number=1, open=True, body=f"Look:\n{marker('a' * 12)}\n")
    assert quoting.finding is None
    assert decide([finding()], [quoting])[0].verb is Verb.OPEN


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_does_no_harm_in_an_issue(text: str) -> None:
    """No markup, link, mention or reference comes from a cell, and no second marker."""
    text = f"{text} @somebody closes #123 {marker('b' * 12)}"
    evidence = Evidence(message=text, log=text, last_call=text, trace=text, hypothesis=text)
    failed = record("2.0.0", "install_failed", evidence=evidence)
    now = [*history(GOOD), *hostile_records(text), failed, main_branch(LOST, evidence=evidence)]
    found = find(results(history(GOOD)), results(now))
    assert {one.kind for one in found} >= {Kind.AFFECTED, Kind.UNTESTABLE}
    for one in found:
        said = issue(one, LINKS)
        assert msgspec.json.encode(said)
        assert "\n" not in said.title
        assert "@somebody" not in said.title
        first, _, rest = said.body.partition("\n")
        assert first == marker(one.id)
        tokens = MarkdownIt("gfm-like", {"linkify": False}).parse(rest)
        for token in tokens:
            for part in token.children or []:
                assert part.type != "image"
                if part.type == "link_open":
                    href = str(part.attrs["href"])
                    assert href.startswith((LINKS.site, LINKS.repository))
                    assert ".." not in href.partition("#")[0].split("/")
                if part.type == "html_inline":
                    assert part.content in ("<sub>", "</sub>")
                if part.type == "text":
                    assert "@somebody" not in part.content
                    assert "#123" not in part.content
            if token.type == "html_block":
                assert MARK not in token.content
                assert "b" * 12 not in token.content


def run_watch(folder: Path, command: str) -> int:
    """Run the command of that name in a folder of its own."""
    places = {"--site": "site", "--before": "before", "--outcome": "outcome"}
    words = [word for option, name in places.items() for word in (option, str(folder / name))]
    return watch.main([command, *words])


def test_a_report_is_compared_with_the_one_it_takes_the_place_of(tmp_path: Path) -> None:
    """Set aside before, compared after; the first has nothing to be compared with."""
    site, findings = tmp_path / "site", tmp_path / "outcome" / "findings.json"
    assert run_watch(tmp_path, "after") == watch.NO_REPORT
    assert run_watch(tmp_path, "before") == 0
    render_site(history(GOOD), RUN, site)
    assert run_watch(tmp_path, "after") == 0
    assert json.loads(findings.read_bytes()) == []
    assert run_watch(tmp_path, "before") == 0
    later = msgspec.structs.replace(RUN, generated_at="2026-12-01T04:05:06Z")
    render_site(history({**GOOD, "1.2.0": LOST}), later, site, previous=site)
    assert run_watch(tmp_path, "after") == 0
    [one] = json.loads(findings.read_bytes())
    assert (one["kind"], one["new"], one["regression"]) == ("affected", True, True)


def test_a_last_report_that_cannot_be_read_is_trouble(tmp_path: Path) -> None:
    """Taken for a first report, it would hide what is new."""
    site, trouble = tmp_path / "site", tmp_path / "outcome" / "trouble.json"
    site.mkdir()
    (site / "results.json").write_text("{}")
    assert run_watch(tmp_path, "before") == 0
    render_site(history(GOOD), RUN, site)
    trouble.parent.mkdir()
    trouble.write_text('["a job is missing"]')
    assert run_watch(tmp_path, "after") == 0
    missing, unread = json.loads(trouble.read_bytes())
    assert missing == "a job is missing"
    assert unread.startswith("The report of the run before cannot be read")


def test_a_page_is_where_the_platform_publishes_it_unless_told_otherwise() -> None:
    """For the links in an issue."""
    environ = {"GITHUB_SERVER_URL": "https://forge.example", "GITHUB_REPOSITORY": "Some/thing"}
    assert Links.from_environ(environ).site == "https://some.github.io/thing/"
    own = {**environ, "MATRIX_SITE_URL": "https://page.example"}
    assert Links.from_environ(own).site == "https://page.example/"
    whole = {**environ, "GITHUB_REPOSITORY": "Some/some.github.io"}
    assert Links.from_environ(whole).site == "https://some.github.io/"
    assert Links.from_environ({}) == Links()


@given(st.lists(st.text(max_size=80), max_size=60), st.integers(len(CUT.encode()) + 1, 4000))
def test_a_summary_keeps_to_its_limit_and_is_cut_between_lines(
    lines: list[str], most_bytes: int
) -> None:
    """The platform shows nothing at all of one that is too long."""
    report = "".join(f"{line}\n" for line in lines)
    text = summary(report, most_bytes=most_bytes)
    assert len(text.encode(errors="replace")) <= most_bytes
    if text != report:
        assert text.endswith(CUT)
        assert report.startswith(text.removesuffix(CUT))


def test_a_summary_begins_with_what_needs_a_person() -> None:
    """Trouble, then news, then the report."""
    text = summary(
        "# Report\n",
        trouble=["job <b>x</b> did not deliver"],
        findings=[{"title": "told before", "new": False}, {"title": "new one", "new": True}],
    )
    assert text == (
        "## Trouble\n\n- job &lt;b&gt;x&lt;/b&gt; did not deliver\n\n"
        "## New findings\n\n- new one\n\n# Report\n"
    )
