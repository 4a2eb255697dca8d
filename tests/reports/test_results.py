"""results.json keeps its form, and the committed schema is the form's."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from jsonschema import Draft202012Validator

from reports.results import SCHEMA_PATH, schema_text
from reports.site import render_site
from tests.reports.factory import RUN, history, main_branch

if TYPE_CHECKING:
    from pathlib import Path


def test_the_committed_schema_is_the_generated_one() -> None:
    """Whoever changes the types regenerates the schema: `python -m reports.results`."""
    assert SCHEMA_PATH.read_text(encoding="utf-8") == schema_text()


def test_results_are_valid_by_the_committed_schema(tmp_path: Path) -> None:
    """What the site publishes validates against the schema in the repository."""
    records = [*history({"1.0": "prefix_lost", "1.1": "timeout", "1.2": "ok"}), main_branch()]
    render_site(records, RUN, tmp_path)
    schema = json.loads(SCHEMA_PATH.read_text(encoding="utf-8"))
    Draft202012Validator.check_schema(schema)
    document = json.loads((tmp_path / "results.json").read_bytes())
    Draft202012Validator(schema).validate(document)
    assert document["schema_version"] == 1
    assert [s["statement"] for s in document["statements"]] == [
        "affected",
        "under_investigation",
        "fixed",
        "fixed",
    ]
