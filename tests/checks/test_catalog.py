"""The words of the instrument, and the cases made of them."""

from __future__ import annotations

import subprocess
import sys

import pytest

from checks.catalog import DEFECTS, MODELS, SCENARIOS, STATUSES, Case, select_cases

CORE = (
    "below-boundary",
    "decode-crossing",
    "prompt-at-boundary",
    "prompt-past-boundary",
    "left-padded",
)


def test_all_scenarios_of_the_design_are_there() -> None:
    """Twenty-four scenarios, five of them core, each with a line that says what it is."""
    assert len(SCENARIOS) == 24
    assert tuple(name for name, entry in SCENARIOS.items() if entry.core) == CORE
    assert all(entry.summary for entry in SCENARIOS.values())


def test_words_are_those_of_the_records() -> None:
    """Statuses and defects are the closed lists that records are validated against."""
    assert STATUSES == ("ok", "affected", "inconclusive", "unsupported", "not_run", "error")
    assert len(DEFECTS) == 9


def test_the_default_is_the_core_set_on_phi3_with_both_backends() -> None:
    """Without a word, ten cases."""
    cases = select_cases()
    assert len(cases) == 10
    assert {case.attention for case in cases} == {"eager", "sdpa"}
    assert {case.model for case in cases} == {"phi3"}


def test_an_id_names_its_case() -> None:
    """Parsing an id gives the case that has it, for every case there is."""
    for case in select_cases(["all"], ["all"], ["all"], ["all"], ["all"]):
        assert Case.parse(case.id) == case


def test_order_and_repetition_do_not_matter() -> None:
    """The same selection in other words is the same tuple."""
    some = select_cases(["left-padded", "core"], ["llama", "phi3"])
    assert some == select_cases(["core"], ["phi3", "llama", "phi3"])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"scenarios": ["decode-crosing"]}, "did you mean decode-crossing?"),
        ({"models": ["phi4"]}, "Allowed: phi3, phimoe, phi4_multimodal, llama"),
        ({"attentions": ["flash"]}, "unknown attention 'flash'"),
        ({"devices": ["gpu"]}, "unknown device 'gpu'"),
        ({"dtypes": ["fp16"]}, "unknown dtype 'fp16'"),
    ],
)
def test_a_wrong_word_is_named_with_what_is_allowed(
    arguments: dict[str, list[str]], said: str
) -> None:
    """The message has the word, the nearest and the whole list."""
    with pytest.raises(ValueError, match="unknown") as caught:
        select_cases(**arguments)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "phi3/decode-crossing",
        "phi3/decode-crossing/eager/cpu/float64",
        "llama/sliding-window/eager/cpu/float32",
        "phi3/rotary-probe/eager/cpu/bfloat16",
    ],
)
def test_what_means_nothing_is_no_case(text: str) -> None:
    """An id with a part missing, an unknown word, or a combination without meaning."""
    with pytest.raises(ValueError, match=r"case|unknown"):
        Case.parse(text)


def test_combinations_without_meaning_are_not_selected() -> None:
    """Llama has no window; rotary tables have no precision to compare."""
    ids = {case.id for case in select_cases(["all"], ["all"], dtypes=["all"])}
    assert "llama/sliding-window/eager/cpu/float32" not in ids
    assert not any("rotary-probe" in name and "bfloat16" in name for name in ids)
    assert all(any(name.startswith(model) for name in ids) for model in MODELS)


def test_reading_the_catalog_needs_no_torch() -> None:
    """The harness reads it on a Python that has none."""
    program = (
        "import sys; sys.modules['torch'] = None; sys.modules['transformers'] = None; "
        "import checks.catalog, checks.revision; print(checks.revision.check_revision())"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert len(done.stdout.strip()) == 12
