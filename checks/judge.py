"""From two oracles and the controls to a status: the table of ``CHECK.md``, as pure functions."""

from __future__ import annotations

from dataclasses import dataclass

from checks.compare import Agreement

AGREE, GREY, DIFFER = Agreement.AGREE, Agreement.GREY, Agreement.DIFFER


@dataclass(frozen=True)
class Judgement:
    """What the oracles say together.

    Attributes:
        status: ``ok``, ``affected`` or ``inconclusive``.
        oracles: in words, e.g. ``U differs, R differs``.
        reading: how to read it.
    """

    status: str
    oracles: str
    reading: str


def judge(uncached: Agreement | None, reference: Agreement | None) -> Judgement:
    """Read oracles U and R together; None where one doesn't apply.

    Raises:
        ValueError: neither applies, so nothing was measured.
    """
    if uncached is None and reference is None:
        raise ValueError("neither oracle was asked")
    words = [
        f"{name} {agreement.value}"
        for name, agreement in (("U", uncached), ("R", reference))
        if agreement is not None
    ]
    status, reading = _read(uncached, reference)
    return Judgement(status, ", ".join(words), reading)


def _read(uncached: Agreement | None, reference: Agreement | None) -> tuple[str, str]:
    if GREY in (uncached, reference):
        return "inconclusive", "neither noise nor a clear difference"
    if uncached is None:
        return ("ok", "the model is right") if reference is AGREE else _WRONG_MODEL
    if uncached is AGREE:
        if reference is DIFFER:
            return _WRONG_MODEL
        return "ok", "generation agrees"
    if reference is AGREE:
        # Generation is right by the independent oracle, so it must not be called affected.
        return "inconclusive", "suspect the uncached path"
    return "affected", "the cache path is wrong"


_WRONG_MODEL = ("affected", "the model or its config is wrong")
