"""The files for programs keep to the standards they are named after."""

from __future__ import annotations

import csv
import json
import re
from io import StringIO
from typing import TYPE_CHECKING, Any

import msgspec
from hypothesis import given, settings
from jsonschema import Draft202012Validator
from packaging.version import Version

from reports.build import build
from reports.findings import conclude
from reports.outputs.badge import badge
from reports.outputs.csvfile import results_csv
from reports.outputs.osv import osv
from tests.reports.factory import RUN, history, main_branch, record
from tests.reports.strategies import histories

if TYPE_CHECKING:
    from matrix.records import Record

TEXT = {"type": "string", "minLength": 1}
TIME = {"type": "string", "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$"}
OSV = {
    # What the OSV schema, 1.6, asks of the members that we publish (no package ships it).
    "type": "object",
    "required": ["id", "modified"],
    "additionalProperties": False,
    "properties": {
        "schema_version": {"type": "string", "pattern": r"^\d+\.\d+\.\d+$"},
        "id": TEXT,
        "modified": TIME,
        "summary": {"type": "string"},
        "details": {"type": "string"},
        "references": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["type", "url"],
                "properties": {"type": {"enum": ["EVIDENCE", "WEB"]}, "url": TEXT},
            },
        },
        "database_specific": {"type": "object"},
        "affected": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["package"],
                "additionalProperties": False,
                "properties": {
                    "package": {
                        "type": "object",
                        "required": ["ecosystem", "name"],
                        "properties": {
                            "ecosystem": {"const": "PyPI"},
                            "name": TEXT,
                            "purl": {"pattern": "^pkg:pypi/"},
                        },
                    },
                    "versions": {"type": "array", "items": TEXT},
                    "ecosystem_specific": {"type": "object"},
                    "database_specific": {"type": "object"},
                    "ranges": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "required": ["type", "events"],
                            "properties": {
                                "type": {"const": "ECOSYSTEM"},
                                "events": {
                                    "type": "array",
                                    "minItems": 1,
                                    "contains": {"required": ["introduced"]},
                                    "items": {
                                        "type": "object",
                                        "minProperties": 1,
                                        "maxProperties": 1,
                                        "properties": {
                                            "introduced": TEXT,
                                            "fixed": TEXT,
                                            "last_affected": TEXT,
                                        },
                                        "additionalProperties": False,
                                    },
                                    "not": {
                                        "allOf": [
                                            {"contains": {"required": ["fixed"]}},
                                            {"contains": {"required": ["last_affected"]}},
                                        ]
                                    },
                                },
                            },
                        },
                    },
                },
            },
        },
    },
}


def entry(records: list[Record], *offered: str) -> dict[str, Any]:
    """The OSV entry of records."""
    run = msgspec.structs.replace(RUN, releases=offered, site_url="https://example.org/")
    findings = conclude(records, run)
    found: dict[str, Any] = json.loads(
        msgspec.json.encode(osv(findings, build(findings, run), run))
    )
    return found


def in_a_range(ranges: list[dict[str, Any]], name: str) -> bool:
    """Whether OSV's own algorithm finds the version in a range."""
    here = Version(name)
    for one in ranges:
        affected = False
        for event in one["events"]:
            ((kind, at),) = event.items()
            if kind == "introduced":
                affected |= here >= Version(at)
            elif kind == "fixed":
                affected &= here < Version(at)
            else:
                affected &= here <= Version(at)
        if affected:
            return True
    return False


class TestOsv:
    """OSV, for tools that look packages up."""

    def test_two_intervals_are_two_ranges(self) -> None:
        """With `fixed` where the next release was measured, `last_affected` where not."""
        document = entry(
            history({"1.0": "crash", "1.1": "ok", "1.2": "crash", "1.3": "timeout", "1.4": "ok"})
        )
        (affected,) = document["affected"]
        assert [r["events"] for r in affected["ranges"]] == [
            [{"introduced": "1.0"}, {"fixed": "1.1"}],
            [{"introduced": "1.2"}, {"last_affected": "1.2"}],
        ]
        assert affected["versions"] == ["1.0", "1.2"]

    def test_no_range_bridges_a_minor_release_that_was_not_tested(self) -> None:
        """Nor does `fixed` claim where in it the fix was."""
        (affected,) = entry(history({"1.1": "crash", "1.5": "crash", "1.9": "ok"}))["affected"]
        assert [r["events"] for r in affected["ranges"]] == [
            [{"introduced": "1.1"}, {"last_affected": "1.1"}],
            [{"introduced": "1.5"}, {"last_affected": "1.5"}],
        ]

    def test_its_id_is_nobody_s(self) -> None:
        """It cannot be taken for an entry of a real database."""
        assert not re.match(r"(?:CVE|GHSA|PYSEC|OSV)-", entry([record()])["id"])

    def test_moving_refs_are_no_versions(self) -> None:
        """OSV knows releases."""
        assert entry([main_branch("crash")])["affected"] == []

    @settings(max_examples=60)
    @given(histories())
    def test_ranges_hold_the_affected_releases_and_no_other(self, records: list[Record]) -> None:
        """By OSV's own algorithm; a release without an answer is in no range."""
        document = entry(records, "1.0.5", "9.9")
        Draft202012Validator(OSV).validate(document)
        findings = conclude(records, RUN)
        affected = {s.transformers for s in findings.statements if s.statement == "affected"}
        ranges = [r for one in document["affected"] for r in one["ranges"]]
        listed = [name for one in document["affected"] for name in one["versions"]]
        assert set(listed) == affected
        for name in {*findings.releases, "1.0.5", "9.9"}:
            assert in_a_range(ranges, name) == (name in affected)


class TestBadge:
    """The endpoint of shields.io."""

    def test_its_form(self) -> None:
        """`schemaVersion` 1, a label, a message, a colour; nothing else is required."""
        run_view = build(conclude([record(outcome="crash")], RUN), RUN)
        document = json.loads(msgspec.json.encode(badge(run_view)))
        assert document == {
            "schemaVersion": 1,
            "label": "LongRoPE crossing",
            "message": "affected: 1.0.0, not fixed yet",
            "color": "b3361b",
        }

    def test_unknown_is_grey(self) -> None:
        """A badge is never green for want of measurements."""
        view = build(conclude([record(outcome="timeout")], RUN), RUN)
        assert badge(view).color == "lightgrey"


class TestCsv:
    """The records as a table."""

    def test_numbers_are_numbers(self) -> None:
        """Whole numbers stay whole, and what is missing is empty."""
        text = results_csv([record(outcome="crash"), record("1.1", "timeout")]).decode()
        first, second = csv.DictReader(StringIO(text, newline=""))
        assert (first["error"], first["first_length"], first["generated"]) == ("0.83", "10", "2 26")
        assert (second["error"], second["first_length"], second["defect"]) == ("", "", "")

    def test_lines_end_as_rfc_4180_says(self) -> None:
        """Every line, the last one too."""
        assert results_csv([record()]).count(b"\r\n") == 2
