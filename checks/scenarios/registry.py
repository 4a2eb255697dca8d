"""Finds the function of a scenario by its name."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass

from checks.bench import Bench
from checks.models import TINY, Shape
from checks.observation import Run

ScenarioFunction = Callable[[Bench], Run]


@dataclass(frozen=True)
class Plan:
    """How a scenario is measured.

    Attributes:
        run: from a bench to the run it saw there.
        shape: the plain shape of its model.
        own_control: its steps before the crossing serve as negative control. For scenarios that
            are too slow to run twice, and that take all their steps in one way.
    """

    run: ScenarioFunction
    shape: Shape
    own_control: bool


_PLANS: dict[str, Plan] = {}
_MODULES = ("decoding", "batches", "search", "caches", "inputs", "internals", "serving")


def scenario(
    name: str, shape: Shape = TINY, *, own_control: bool = False
) -> Callable[[ScenarioFunction], ScenarioFunction]:
    """Register the function of scenario *name*."""

    def register(function: ScenarioFunction) -> ScenarioFunction:
        _PLANS[name] = Plan(function, shape, own_control)
        return function

    return register


def plan_of(name: str) -> Plan:
    """How scenario *name* is measured.

    Raises:
        KeyError: the catalog has a scenario that nobody wrote.
    """
    _load()
    return _PLANS[name]


def registered() -> frozenset[str]:
    """Names of all scenarios that have a function."""
    _load()
    return frozenset(_PLANS)


def _load() -> None:
    for module in _MODULES:
        importlib.import_module(f"checks.scenarios.{module}")
