"""What a model's own ``config.json`` says about LongRoPE, read without any release.

Standard library only.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from checks.catalog import MODELS

_KINDS = ("longrope", "su")
# Published by its makers with code of their own before the library had the model.
_ALSO = {"phi4mm": "phi4_multimodal"}


@dataclass(frozen=True)
class Configuration:
    """The part of a model's configuration that decides about the crossing.

    Attributes:
        path: the file.
        model: the model of the catalog that it belongs to.
        original: O in tokens.
        longest: ``max_position_embeddings`` in tokens, or None.
        only_in_rope_dict: whether O stands nowhere but in the rope dictionary.
        window: ``sliding_window`` in tokens, or None.
    """

    path: Path
    model: str
    original: int
    longest: int | None
    only_in_rope_dict: bool
    window: int | None


def read_configuration(path: Path) -> Configuration | None:
    """Read the file, or ``config.json`` in the folder; None where it has no LongRoPE.

    Raises:
        OSError: it can't be read.
        ValueError: it isn't a model's configuration, or of a model that isn't checked; the message
            says what was found, and what to do.
    """
    if path.is_dir():
        path = path / "config.json"
    text = path.read_text(encoding="utf-8")
    try:
        given = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"{path} is not JSON: {error}") from None
    if not isinstance(given, dict) or "model_type" not in given:
        raise ValueError(f"{path} is no model's configuration: it has no model_type")
    rope = _rope_dictionary(given)
    kind = rope.get("rope_type", rope.get("type"))
    if kind not in _KINDS:
        return None
    name = str(given["model_type"])
    model = _ALSO.get(name, name)
    if model not in MODELS:
        raise ValueError(
            f"{path} has LongRoPE, and its model_type {name!r} is none of the models that are "
            f"checked: {', '.join(MODELS)}. Try --models llama without --config: a model without "
            "any special care, as most are"
        )
    return _configuration(path, model, given, rope)


def _configuration(
    path: Path, model: str, given: Mapping[str, Any], rope: Mapping[str, Any]
) -> Configuration:
    outside = _number(path, given, "original_max_position_embeddings")
    inside = _number(path, rope, "original_max_position_embeddings")
    original = outside if outside is not None else inside
    if original is None:
        raise ValueError(f"{path} has LongRoPE and no original_max_position_embeddings")
    return Configuration(
        path=path,
        model=model,
        original=original,
        longest=_number(path, given, "max_position_embeddings"),
        only_in_rope_dict=outside is None,
        window=_number(path, given, "sliding_window"),
    )


def _rope_dictionary(given: Mapping[str, Any]) -> Mapping[str, Any]:
    for name in ("rope_parameters", "rope_scaling"):
        value = given.get(name)
        if isinstance(value, dict):
            return value
    return {}


def _number(path: Path, given: Mapping[str, Any], name: str) -> int | None:
    value = given.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value <= 0:
        raise ValueError(f"{path}: {name} is {value!r}, and should be a number of tokens")
    return int(value)
