"""What a process leaves behind becomes records: also when it died half-way."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from matrix.outcomes import Outcome, RecordMaker, read_outcome
from matrix.records import Provenance, Reason, Record, Source, Status
from matrix.releases import Release
from matrix.runtimes import Environment
from tests.matrix.factory import CASE, REVISION, release

if TYPE_CHECKING:
    from collections.abc import Mapping

SECOND = CASE.replace("eager", "sdpa")
THIRD = CASE.replace("decode-crossing", "left-padded")
ENVIRONMENT = {
    "kind": "environment",
    "transformers": "1.0.dev0",
    "torch": "2.13.0+cpu",
    "python": "3.11.9",
    "devices": {"cpu": "a processor"},
}


def result(case: str, **fields: object) -> dict[str, object]:
    """A line for a case that ended."""
    return {"kind": "result", "case": case, "status": "ok", "seconds": 0.1, **fields}


def start(case: str) -> dict[str, object]:
    """A line for a case that began."""
    return {"kind": "start", "case": case}


def outcome(
    tmp_path: Path,
    *lines: Mapping[str, object],
    ending: str = "done",
    message: str = "",
    log: str = "",
    tail: str = "",
) -> Outcome:
    """What is read back of a process that wrote these lines."""
    out, printed = tmp_path / "out.jsonl", tmp_path / "out.log"
    out.write_text("".join(json.dumps(line) + "\n" for line in lines) + tail, encoding="utf-8")
    printed.write_text(log, encoding="utf-8")
    return read_outcome(out, printed, ending=ending, message=message)


def records(found: Outcome, *cases: str, of: Release | None = None) -> tuple[Record, ...]:
    """The records made of it."""
    maker = RecordMaker(
        release=of or release("1.0"),
        runtime=Environment(
            folder=Path(), executable=Path(), python="3.11.7", packages={"torch": "2.13.0"}
        ),
        provenance=Provenance(check_revision=REVISION, started_at="2026-01-01T00:00:00Z"),
    )
    return maker.from_outcome(found, cases)


def brief(made: tuple[Record, ...]) -> list[tuple[str, Status, Reason | None]]:
    """Case, status and reason of each."""
    return [(record.case, record.status, record.reason) for record in made]


def test_results_become_records_with_what_the_cell_found(tmp_path: Path) -> None:
    """Python and torch are those that really ran."""
    found = outcome(tmp_path, ENVIRONMENT, start(CASE), result(CASE))
    (made,) = records(found, CASE)
    assert (made.python, made.torch, made.transformers) == ("3.11.9", "2.13.0+cpu", "1.0")


def test_a_moving_refs_version_is_what_was_installed(tmp_path: Path) -> None:
    """Its name says nothing about it."""
    main = Release(version="main", source=Source.GIT, ref="main", commit="c" * 40)
    (made,) = records(outcome(tmp_path, ENVIRONMENT, result(CASE)), CASE, of=main)
    assert (made.transformers, made.release) == ("1.0.dev0", "main")


@pytest.mark.parametrize(
    ("ending", "message", "log", "reason"),
    [
        ("timeout", "", "", Reason.TIMEOUT),
        ("died", "exit code -11", "", Reason.CRASHED),
        ("died", "exit code -6", "terminate called: std::bad_alloc", Reason.OUT_OF_MEMORY),
        ("failed", "MemoryError: ", "", Reason.OUT_OF_MEMORY),
        ("failed", "KeyError: 'x'", "", Reason.CHECK_ERROR),
    ],
)
def test_the_case_that_a_process_died_in_gets_the_reason(
    tmp_path: Path, ending: str, message: str, log: str, reason: Reason
) -> None:
    """The one before has its result; the one after is left for another process."""
    found = outcome(
        tmp_path, start(CASE), result(CASE), start(SECOND), ending=ending, message=message, log=log
    )
    assert brief(records(found, CASE, SECOND, THIRD)) == [
        (CASE, Status.OK, None),
        (SECOND, Status.ERROR, reason),
    ]


def test_a_process_that_wrote_nothing_settles_all_its_cases(tmp_path: Path) -> None:
    """Another one would do no better."""
    found = read_outcome(tmp_path / "none", tmp_path / "none", ending="died", message="exit 9")
    assert {status for _, status, _ in brief(records(found, CASE, SECOND))} == {Status.ERROR}


def test_a_line_that_was_cut_off_is_not_read_as_a_result(tmp_path: Path) -> None:
    """The process died while it wrote it."""
    found = outcome(
        tmp_path, start(CASE), ending="died", tail='{"kind":"result","case":"' + CASE + '","sta'
    )
    assert brief(records(found, CASE)) == [(CASE, Status.ERROR, Reason.CRASHED)]


@pytest.mark.parametrize(
    "wrong",
    [
        {"status": "fine"},
        {"evidence": {"unheard_of": 1}},
        {"status": "affected", "defect": "bad"},
        {"status": "affected"},
        {"status": "error"},
        {"status": "ok", "reason": "crashed"},
    ],
)
def test_a_result_that_breaks_the_contract_is_an_error_of_the_check(
    tmp_path: Path, wrong: dict[str, object]
) -> None:
    """Never a verdict."""
    found = outcome(tmp_path, start(CASE), result(CASE, **wrong), start(SECOND), result(SECOND))
    assert brief(records(found, CASE, SECOND)) == [
        (CASE, Status.ERROR, Reason.CHECK_ERROR),
        (SECOND, Status.OK, None),
    ]


@pytest.mark.parametrize(
    ("reason", "text", "status", "told"),
    [
        ("import_failed", "ImportError: x", Status.ERROR, Reason.IMPORT_FAILED),
        ("torch_too_old", "needs torch >= 9", Status.UNSUPPORTED, Reason.TORCH_TOO_OLD),
        ("import_failed", "MemoryError", Status.ERROR, Reason.OUT_OF_MEMORY),
    ],
)
def test_a_release_that_cannot_be_imported_settles_all_its_cases(
    tmp_path: Path, reason: str, text: str, status: Status, told: Reason
) -> None:
    """With what it said."""
    line = {"kind": "import_failed", "reason": reason, "message": text, "traceback": "…"}
    made = records(outcome(tmp_path, ENVIRONMENT, line), CASE, SECOND)
    assert brief(made) == [(CASE, status, told), (SECOND, status, told)]
    assert made[0].evidence.message == text
