"""The words a reader meets: one phrase for every code of DESIGN.md.

Codes stay in the machine-readable files; people get these. A code that is not known here
(somebody else's scenario, say) stands for itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from matrix.records import Defect, Reason, Status

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

CONTROL_SCENARIO: Final = "below-boundary"
"""The scenario that never crosses: it shows that the check works, not that a release does."""

CORE_SCENARIOS: Final = frozenset(
    {
        CONTROL_SCENARIO,
        "decode-crossing",
        "prompt-at-boundary",
        "prompt-past-boundary",
        "left-padded",
    }
)
"""The scenarios that decide what is said of a release (DESIGN.md, "Scenario names")."""

MODELS: Final = {
    "phi3": "Phi-3",
    "phimoe": "PhiMoE",
    "phi4_multimodal": "Phi-4-multimodal",
    "llama": "Llama with LongRoPE",
}

SCENARIOS: Final = {
    "below-boundary": "stays below the boundary (control)",
    "decode-crossing": "decodes across the boundary",
    "prompt-at-boundary": "prompt ends exactly at the boundary",
    "prompt-past-boundary": "prompt is already past the boundary",
    "left-padded": "left-padded batch, one row padded",
    "all-rows-padded": "left-padded batch, every row padded",
    "beam-search": "beam search across the boundary",
    "sampling": "sampling across the boundary",
    "static-cache": "static cache",
    "inputs-embeds": "prompt given as embeddings",
    "second-turn": "a second turn on a kept cache",
    "continue-after-crossing": "continues on the cache of a crossing",
    "chunked-prefill": "prefill in chunks",
    "assisted-decoding": "assisted decoding",
    "crop-back": "cache cropped back below the boundary",
    "sliding-window": "sliding window shorter than the boundary",
    "config-in-rope-dict": "boundary given only inside the rope dict",
    "explicit-position-ids": "position ids passed to generate",
    "forward-loop": "hand-written loop over forward",
    "rotary-probe": "rotary tables around the boundary",
    "regime-leak": "one instance, short and long in turn",
    "continuous-batching": "continuous batching",
    "compiled": "compiled model",
    "true-scale": "boundary of 4,096 as published",
}

WORKAROUNDS: Final = {
    "second-call": (
        "Generate up to O + 1 tokens (O is original_max_position_embeddings), then call generate"
        " again on the whole text, without the old cache"
    ),
    "no-cache": "generate(…, use_cache=False); slow, since every token reads the whole text",
}

SCENARIO_ORDER: Final = {name: index for index, name in enumerate(SCENARIOS)}
WORKAROUND_ORDER: Final = {name: index for index, name in enumerate(WORKAROUNDS)}
MODEL_ORDER: Final = {name: index for index, name in enumerate(MODELS)}

DEFECTS: Final = {
    Defect.PREFIX_LOST: "prefix lost",
    Defect.STALE_KEYS: "stale keys",
    Defect.WRONG_MASK: "wrong mask",
    Defect.WRONG_FACTOR: "wrong factors",
    Defect.WRONG_SCALING: "wrong scaling",
    Defect.TRUNCATED_CACHE: "truncated cache",
    Defect.NON_FINITE: "not finite",
    Defect.CRASH: "crash",
    Defect.UNCLASSIFIED: "unclassified",
}

DEFECT_VERBS: Final = {
    Defect.PREFIX_LOST: "loses the prefix",
    Defect.STALE_KEYS: "keeps stale keys",
    Defect.WRONG_MASK: "computes the prefix again without a causal mask",
    Defect.WRONG_FACTOR: "uses the wrong set of factors",
    Defect.WRONG_SCALING: "scales the rotary embedding wrongly",
    Defect.TRUNCATED_CACHE: "returns a truncated cache",
    Defect.NON_FINITE: "produces NaN or infinity",
    Defect.CRASH: "crashes",
    Defect.UNCLASSIFIED: "goes wrong in a way that matches no known defect",
}

DEFECT_MEANINGS: Final = {
    Defect.PREFIX_LOST: (
        "The cache is cleared, but the next forward gets only the newest token: everything"
        " before it is forgotten, without an error."
    ),
    Defect.STALE_KEYS: (
        "Keys cached under the short factors are read with a query under the long ones."
    ),
    Defect.WRONG_MASK: "The prefix is computed again, but every token sees the ones after it.",
    Defect.WRONG_FACTOR: "The other of the two sets of factors is used throughout.",
    Defect.WRONG_SCALING: "The right factors are used, with another attention scaling.",
    Defect.TRUNCATED_CACHE: "The cache that comes back lacks entries.",
    Defect.NON_FINITE: "The logits contain NaN or infinity.",
    Defect.CRASH: "An exception is raised where a result was due.",
    Defect.UNCLASSIFIED: "The logits disagree and no hypothesis reproduces them.",
}

REASONS: Final = {
    Reason.INSTALL_FAILED: "could not be installed",
    Reason.DEPENDENCY_CONFLICT: "its dependencies conflict",
    Reason.IMPORT_FAILED: "could not be imported",
    Reason.CRASHED: "the process died",
    Reason.OUT_OF_MEMORY: "ran out of memory",
    Reason.TIMEOUT: "ran out of time",
    Reason.TORCH_TOO_OLD: "this torch is too old for it",
    Reason.NO_DEVICE: "no such device here",
    Reason.NO_MODEL: "this release has no such model",
    Reason.NO_BACKEND: "no such attention backend",
    Reason.NO_FEATURE: "this release lacks the feature",
    Reason.UNREACHABLE: "could not be reached",
    Reason.NO_SUCH_RELEASE: "no such release",
    Reason.NOT_SELECTED: "not selected in this run",
    Reason.CONTROL_FAILED: "a control misbehaved",
    Reason.CHECK_ERROR: "the check itself failed",
}

VERDICTS: Final = {
    "affected": "affected",
    "fixed": "fixed",
    "not_affected": "not affected",
    "under_investigation": "not decided",
}

SYMBOLS: Final = {
    Status.OK: "✓",
    Status.AFFECTED: "✕",
    Status.INCONCLUSIVE: "?",
    Status.UNSUPPORTED: "–",  # noqa: RUF001
    Status.NOT_RUN: "·",
    Status.ERROR: "!",
}

_GOOD: Final = frozenset({"ok", "fixed", "not_affected", "good"})
_BAD: Final = frozenset({"affected", "bad", *map(str, Defect)})

STATUSES: Final = {
    Status.OK: "ok",
    Status.AFFECTED: "affected",
    Status.INCONCLUSIVE: "inconclusive",
    Status.UNSUPPORTED: "unsupported",
    Status.NOT_RUN: "not run",
    Status.ERROR: "error",
}


def model_title(model: str) -> str:
    """``phi3`` -> ``Phi-3``."""
    return MODELS.get(model, model)


def scenario_title(scenario: str) -> str:
    """``decode-crossing`` -> ``decodes across the boundary``."""
    return SCENARIOS.get(scenario, scenario)


def scenario_key(scenario: str) -> tuple[int, str]:
    """Sort key: catalog order, unknown scenarios behind it by name."""
    return SCENARIO_ORDER.get(scenario, len(SCENARIO_ORDER)), scenario


def workaround_title(workaround: str) -> str:
    """``no-cache`` -> ``generate(…, use_cache=False); slow, …``."""
    return WORKAROUNDS.get(workaround, workaround)


def workaround_key(workaround: str) -> tuple[int, str]:
    """Sort key: catalog order, unknown workarounds behind it by name."""
    return WORKAROUND_ORDER.get(workaround, len(WORKAROUND_ORDER)), workaround


def model_key(model: str) -> tuple[int, str]:
    """Sort key: catalog order, unknown models behind it by name."""
    return MODEL_ORDER.get(model, len(MODEL_ORDER)), model


def join(items: Sequence[str], last: str = "and") -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    if len(items) < 2:
        return "".join(items)
    return f"{', '.join(items[:-1])} {last} {items[-1]}"


def enumerate_some(items: Sequence[str], limit: int) -> str:
    """Like `join`, but at most `limit` of them by name: ``a, b and 3 more``."""
    if len(items) <= limit:
        return join(items)
    return join([*items[: limit - 1], f"{len(items) - limit + 1} more"])


def count(number: int, one: str, many: str | None = None) -> str:
    """``1 release``, ``1,204 releases``."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def stretch(first: str, last: str) -> str:
    """``5.3.0`` or ``5.3.0 to 5.17.0``."""
    return first if first == last else f"{first} to {last}"


def look(style: str) -> str:
    """How a status or verdict looks: ``good``, ``bad``, or ``none`` for whatever is not known."""
    if style in _GOOD:
        return "good"
    return "bad" if style in _BAD else "none"


def unique(items: Iterable[str]) -> tuple[str, ...]:
    """The items without repetition, in the order of their first appearance."""
    return tuple(dict.fromkeys(items))
