"""The test of every case; :mod:`checks.plugin` makes one for each."""

from __future__ import annotations

import json

import pytest

from checks.result import Result


def test_crossing(result: Result) -> None:
    """Generation agrees with the oracles at every step and row."""
    said = json.dumps(dict(result.evidence), indent=1)
    if result.status == "affected":
        pytest.fail(f"affected: {result.defect}\n{said}", pytrace=False)
    if result.status != "ok":
        pytest.skip(
            f"{result.status}: {result.reason or 'grey zone'}: {result.evidence.get('message', '')}"
        )
