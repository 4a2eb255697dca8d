"""What a record may say of the machine that it was made on."""

from __future__ import annotations

from matrix.records import Evidence
from matrix.tidy import tidy
from tests.matrix.factory import record

PLACES = {
    "/home/me": "~",
    "/home/me/checkout": ".",
    "/home/me/checkout/.matrix": ".matrix",
    "/": "x",
}


def test_folders_of_the_machine_are_called_by_other_names() -> None:
    """In every text of the evidence; the innermost folder first."""
    evidence = Evidence(
        message="File /home/me/checkout/.matrix/layers/1.0/a.py",
        log="at /home/me/checkout/checks/b.py\nin /home/me/.cache/uv",
        notes=("see /home/me/checkout", "and/or"),
        error=0.5,
    )
    tidied = tidy(record("1.0", evidence=evidence), PLACES).evidence
    assert tidied == Evidence(
        message="File .matrix/layers/1.0/a.py",
        log="at ./checks/b.py\nin ~/.cache/uv",
        notes=("see .", "and/or"),
        error=0.5,
    )


def test_a_record_without_paths_is_left_as_it_is() -> None:
    """Not even a copy."""
    one = record("1.0", "lost")
    assert tidy(one, PLACES) is one
