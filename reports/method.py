"""How it is measured, in the words of the page."""

from __future__ import annotations

from textwrap import dedent
from typing import Final

_TEXT: Final = """
    A language model with LongRoPE has two sets of rotary factors: short ones up to its original
    length, long ones above it. Keys cached under one set are wrong under the other, so a library
    that generates with a cache has to do something right at the moment when a sequence grows past
    that length.

    Each case builds a tiny model with its own weights, generates across the boundary, and compares
    the logits of every step and every row with a forward of the same release over the whole prefix
    without a cache. Releases that are right agree to rounding; a defect is far beyond the
    tolerance. The page of each release gives the error beside its tolerance.

    A record counts only if its controls behave: a generation below the boundary agrees, the two
    sets of factors are far apart on this very prompt, and a prefix dropped on purpose is noticed.
    Otherwise it is inconclusive, and nothing is concluded from it.

    The core ways of use decide what is said of a release: a decode across the boundary, prompts at
    it and just past it, a left-padded batch, and a control below it. Others are told beside. A
    release is affected if any core way of use measured on it is. It is called right only if every
    one that an earlier release got wrong was measured on it and is right, and nothing tried on it
    stayed without an answer. A release that was not measured is unknown, whatever its neighbours
    are.
"""

METHOD: Final = tuple(" ".join(part.split()) for part in dedent(_TEXT).strip().split("\n\n"))
"""Paragraphs."""
