"""What is new since the run before, and why."""

from __future__ import annotations

import msgspec


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One difference between two runs.

    Attributes:
        at: When the run that saw it was made.
        kind: ``newly_affected``, ``newly_fixed``, ``newly_unknown``, ``newly_decided``,
            ``new_release``, ``other_defect`` or ``gone``.
        release: The release.
        model: The model.
        before: What was said of it; empty for a new release.
        after: What is said now.
        why: What made the difference, as far as the records tell.
        text: The change in a sentence.
    """

    at: str
    kind: str
    release: str
    model: str
    before: str
    after: str
    why: str
    text: str
