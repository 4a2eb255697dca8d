"""Texts from a cell, made fit to be kept: without the paths of the machine that it ran on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matrix.records import Record


def tidy(record: Record, places: Mapping[str, str]) -> Record:
    """`record` with the folders that are keys of `places` called by their values.

    Records are committed and published. Where something lay on one machine is nobody's
    business, and would make the same failure look different on the next.
    """
    evidence = record.evidence
    changed = msgspec.structs.replace(
        evidence,
        message=rename(evidence.message, places),
        log=rename(evidence.log, places),
        notes=tuple(rename(note, places) or "" for note in evidence.notes),
    )
    return record if changed == evidence else msgspec.structs.replace(record, evidence=changed)


def rename(text: str | None, places: Mapping[str, str]) -> str | None:
    """`text` with the folders that are keys of `places` called by their values."""
    # The longest first: a folder may lie in another one.
    for folder in sorted(places, key=len, reverse=True):
        if text and len(folder) > 1:
            text = text.replace(folder, places[folder])
    return text
