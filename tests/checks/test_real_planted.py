"""Break a sound release on purpose: the check must say so, name it, and let harmless changes be."""

from __future__ import annotations

import os

import pytest

from checks import adapt
from checks.catalog import Case
from checks.measure import measure
from checks.models import SPECS
from tests.checks.conftest import REQUIRED
from tests.checks.planting import PLANTS, Plant
from tests.checks.table import TABLE, Row

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("default"),  # whatever a release warns of is its own affair
]

ATTENTIONS = ("eager", "sdpa")
NEEDED = sorted({plant.scenario for plant in PLANTS})


@pytest.fixture(scope="module")
def sound() -> frozenset[str]:
    """Cases that this release gets right by itself; only there can a defect be planted."""
    cases = [Case("phi3", scenario, attention) for scenario in NEEDED for attention in ATTENTIONS]
    right = frozenset(case.id for case in cases if measure(case).status == "ok")
    if not right:
        reason = "this release is wrong in every case by itself, so nothing can be planted in it"
        if os.environ.get(REQUIRED) == "1":
            pytest.fail(reason, pytrace=False)
        pytest.skip(reason)
    return right


@pytest.mark.parametrize("attention", ATTENTIONS)
@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.name.replace(" ", "-"))
def test_plants_are_found_and_named(
    plant: Plant, attention: str, sound: frozenset[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A planted defect is affected and has its name; a harmless change is ok."""
    case = Case("phi3", plant.scenario, attention)
    if case.id not in sound:
        pytest.skip(f"{case.id} is not right in this release to begin with")
    plant.change(monkeypatch, adapt.load_classes(SPECS["phi3"]).model)
    result = measure(case)
    named = result.defect or ""
    TABLE.rows.append(
        Row(plant.name, f"{plant.scenario} / {attention}", plant.expected, result.status, named)
    )
    if plant.expected == "ok":
        assert result.status == "ok", dict(result.evidence)
    else:
        assert (result.status, named) == ("affected", plant.expected), dict(result.evidence)
