"""Finds the function of a scenario by its name."""

from __future__ import annotations

import importlib
from collections.abc import Callable

from checks.bench import Bench
from checks.models import TINY, TRUE_SCALE, Shape
from checks.observation import Run

ScenarioFunction = Callable[[Bench], Run]

_FUNCTIONS: dict[str, ScenarioFunction] = {}
_SHAPES: dict[str, Shape] = {}
_MODULES = ("decoding", "batches", "search", "caches", "inputs", "internals", "serving")


def scenario(name: str, shape: Shape = TINY) -> Callable[[ScenarioFunction], ScenarioFunction]:
    """Register the function of scenario *name*, measured on a model of *shape*."""

    def register(function: ScenarioFunction) -> ScenarioFunction:
        _FUNCTIONS[name] = function
        _SHAPES[name] = shape
        return function

    return register


def function_of(name: str) -> ScenarioFunction:
    """The function of scenario *name*.

    Raises:
        KeyError: the catalog has a scenario that nobody wrote.
    """
    _load()
    return _FUNCTIONS[name]


def shape_of(name: str) -> Shape:
    """The plain shape of the model that scenario *name* is measured on."""
    _load()
    return _SHAPES[name]


def registered() -> frozenset[str]:
    """Names of all scenarios that have a function."""
    _load()
    return frozenset(_FUNCTIONS)


def _load() -> None:
    for module in _MODULES:
        importlib.import_module(f"checks.scenarios.{module}")


__all__ = ["TRUE_SCALE", "ScenarioFunction", "function_of", "registered", "scenario", "shape_of"]
