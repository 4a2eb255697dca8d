"""``python -m checks --verdict``: what it reads, and what it tells. Needs no torch."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from checks.__main__ import OK, USAGE, main
from checks.catalog import Case
from checks.configuration import Configuration, read_configuration
from checks.result import Result
from checks.verdict import closing_lines, line_of, scenarios_for

if TYPE_CHECKING:
    from pathlib import Path

FACTORS = {"short_factor": [1.0], "long_factor": [4.0]}
PLAIN: dict[str, Any] = {
    "model_type": "phi3",
    "max_position_embeddings": 131072,
    "original_max_position_embeddings": 4096,
    "rope_scaling": {"type": "su", **FACTORS},
}


def _write(folder: Path, **changes: Any) -> Path:
    path = folder / "config.json"
    given = {name: value for name, value in {**PLAIN, **changes}.items() if value is not None}
    path.write_text(json.dumps(given), encoding="utf-8")
    return path


def _given(**changes: Any) -> Configuration:
    from pathlib import Path

    values = {
        "path": Path("config.json"),
        "model": "phi3",
        "original": 4096,
        "longest": 131072,
        "only_in_rope_dict": False,
        "window": None,
    }
    return Configuration(**{**values, **changes})


def test_a_published_configuration_is_read(tmp_path: Path) -> None:
    """From the file, and from its folder."""
    path = _write(tmp_path, sliding_window=2047)
    expected = _given(path=path, window=2047)
    assert read_configuration(path) == expected
    assert read_configuration(tmp_path) == expected


@pytest.mark.parametrize("name", ["rope_scaling", "rope_parameters"])
def test_the_rope_dictionary_alone_may_hold_the_boundary(tmp_path: Path, name: str) -> None:
    """As newer documentation shows it, which is a way of use of its own."""
    rope = {"rope_type": "longrope", **FACTORS, "original_max_position_embeddings": 8192}
    none = {"original_max_position_embeddings": None, "rope_scaling": None}
    path = _write(tmp_path, **{**none, name: rope})
    given = read_configuration(path)
    assert given is not None
    assert (given.original, given.only_in_rope_dict) == (8192, True)


@pytest.mark.parametrize(
    ("changes", "added"),
    [
        ({}, []),
        ({"only_in_rope_dict": True}, ["config-in-rope-dict"]),
        ({"window": 2047}, ["sliding-window"]),
        ({"window": 262144}, []),
    ],
)
def test_a_configuration_adds_what_it_makes_matter(
    changes: dict[str, Any], added: list[str]
) -> None:
    """And asks for nothing twice."""
    assert scenarios_for(_given(**changes), ["core"]) == ["core", *added]
    assert scenarios_for(_given(**changes), added) == added


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"model_type": None}, "no model_type"),
        ({"model_type": "other"}, "none of the models that are checked"),
        ({"original_max_position_embeddings": None}, "no original_max_position_embeddings"),
        ({"original_max_position_embeddings": "4k"}, "should be a number of tokens"),
        ({"original_max_position_embeddings": True}, "should be a number of tokens"),
        ({"sliding_window": -1}, "should be a number of tokens"),
    ],
)
def test_what_cannot_be_read_is_said(
    tmp_path: Path,
    changes: dict[str, Any],
    complaint: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """With the file, what was found, and the status of wrong usage."""
    path = _write(tmp_path, **changes)
    assert main(["--verdict", "--config", str(path)]) == USAGE
    said = capsys.readouterr().err
    assert complaint in said
    assert str(path) in said


def test_broken_and_missing_files_are_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Neither is a traceback."""
    path = tmp_path / "config.json"
    assert main(["--verdict", "--config", str(path)]) == USAGE
    path.write_text("{", encoding="utf-8")
    assert main(["--verdict", "--config", str(path)]) == USAGE
    assert "is not JSON" in capsys.readouterr().err
    assert main(["--config", str(path)]) == USAGE
    assert "--config belongs to --verdict" in capsys.readouterr().err


@pytest.mark.parametrize("rope", [None, {"rope_type": "llama3", "factor": 8.0}])
def test_without_longrope_there_is_nothing_to_cross(
    tmp_path: Path, rope: dict[str, Any] | None, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever the model is, and nothing is measured."""
    path = _write(tmp_path, model_type="other", rope_scaling=rope)
    assert main(["--verdict", "--config", str(path)]) == OK
    assert capsys.readouterr().out.startswith("NOT AFFECTED")


def _result(scenario: str, status: str, **rest: Any) -> Result:
    return Result(Case("phi3", scenario, "sdpa"), status, **rest)


def test_an_affected_environment_is_told_what_helps() -> None:
    """And in which ways of use it doesn't."""
    lost = "prefix_lost"
    results = [
        _result("below-boundary", "ok"),
        _result(
            "decode-crossing",
            "affected",
            defect=lost,
            evidence={"workarounds": {"second-call": "ok", "no-cache": "ok"}},
        ),
        _result(
            "inputs-embeds",
            "affected",
            defect=lost,
            evidence={"workarounds": {"second-call": "ok", "no-cache": "affected"}},
        ),
    ]
    text = "\n".join(closing_lines(results, _given()))
    assert text.startswith("AFFECTED (prefix_lost): once a text grows past 4,096 tokens")
    assert "right in decode-crossing, inputs-embeds" in text
    assert "right in decode-crossing; not right in inputs-embeds" in text
    assert "O is original_max_position_embeddings, 4,096 here." in text
    assert "--reproduce phi3/decode-crossing/sdpa/cpu/float32" in text


def test_a_misread_boundary_is_affected_whatever_the_cases_say() -> None:
    """The model would switch at another length than it was made for."""
    [line] = closing_lines([_result("decode-crossing", "ok")], _given(), "reads O = 1")
    assert line == "AFFECTED: reads O = 1."


@pytest.mark.parametrize(
    ("results", "verdict"),
    [
        ([_result("decode-crossing", "ok")], "NOT AFFECTED in decode-crossing"),
        (
            [_result("decode-crossing", "ok"), _result("static-cache", "unsupported")],
            "NOT AFFECTED in decode-crossing:",
        ),
        ([_result("decode-crossing", "unsupported", reason="no_model")], "NOT DECIDED"),
        (
            [_result("below-boundary", "ok"), _result("decode-crossing", "inconclusive")],
            "NOT DECIDED",
        ),
        ([], "NOT DECIDED"),
    ],
)
def test_unknown_is_never_told_as_right(results: list[Result], verdict: str) -> None:
    """A verdict needs an answer of every case that could give one."""
    assert closing_lines(results, None)[0].startswith(verdict)


def test_a_case_is_one_line() -> None:
    """With its error where one was measured."""
    result = _result("decode-crossing", "affected", defect="crash", evidence={"error": 1.5})
    told = " ".join(line_of(result).split())
    assert told == "✕ phi3 decode-crossing sdpa affected: crash error 1.5"
    unsupported = _result("static-cache", "unsupported", reason="no_feature")
    assert line_of(unsupported).endswith("unsupported: no_feature")
