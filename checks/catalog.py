"""The words of the instrument: scenarios, models, backends, and the cases made of them.

Standard library only: the harness reads this on a Python that has no torch.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

STATUSES = ("ok", "affected", "inconclusive", "unsupported", "not_run", "error")

DEFECTS = (
    "prefix_lost",
    "stale_keys",
    "wrong_mask",
    "wrong_factor",
    "wrong_scaling",
    "truncated_cache",
    "non_finite",
    "crash",
    "unclassified",
)

ATTENTIONS = ("eager", "sdpa", "flex_attention", "flash_attention_2")
DEVICES = ("cpu", "cuda", "mps", "xpu", "npu", "hpu", "mlu", "musa")
DTYPES = ("float32", "bfloat16", "float16")


@dataclass(frozen=True)
class Model:
    """A family of models that carries LongRoPE.

    Attributes:
        name: its word in records and case ids.
        summary: one line for ``--list`` and the report.
    """

    name: str
    summary: str


@dataclass(frozen=True)
class Workaround:
    """Something a user can do without another release.

    Attributes:
        name: its word in the evidence of records.
        summary: one line for the report.
    """

    name: str
    summary: str


@dataclass(frozen=True)
class Scenario:
    """One way to reach the crossing.

    Attributes:
        name: its word in records and case ids.
        summary: one line for ``--list`` and the report.
        core: whether it belongs to the core set.
        optional: whether a release may lack what the scenario needs. Where it is not, a release
            that cannot do it isn't understood, and gives an error instead of ``unsupported``.
        models: the models it makes sense for; empty means all.
        dtypes: the dtypes it makes sense for; empty means all.
        attentions: the attention backends it makes sense for; empty means all.
        workarounds: names of what is tried where a release is affected.
    """

    name: str
    summary: str
    core: bool = False
    optional: bool = False
    models: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ()
    attentions: tuple[str, ...] = ()
    workarounds: tuple[str, ...] = ()

    def allows(self, model: str, attention: str, dtype: str) -> bool:
        """Whether the combination with this scenario means something."""
        return (
            (not self.models or model in self.models)
            and (not self.attentions or attention in self.attentions)
            and (not self.dtypes or dtype in self.dtypes)
        )


WORKAROUNDS: Mapping[str, Workaround] = MappingProxyType(
    {
        workaround.name: workaround
        for workaround in (
            Workaround(
                "second-call",
                "generate up to O + 1 tokens, then call generate again on the whole text, without "
                "the old cache",
            ),
            Workaround(
                "no-cache",
                "generate with use_cache=False, which is slow: every token reads the whole text",
            ),
        )
    }
)
_ALL = tuple(WORKAROUNDS)


def _by_name(entries: Iterable[Scenario]) -> Mapping[str, Scenario]:
    return MappingProxyType({entry.name: entry for entry in entries})


MODELS: Mapping[str, Model] = MappingProxyType(
    {
        model.name: model
        for model in (
            Model("phi3", "Phi-3 and Phi-4-mini: clears the cache at the crossing"),
            Model("phimoe", "Phi-3.5-MoE: LongRoPE with a scaling of its own for each set"),
            Model("phi4_multimodal", "Phi-4-multimodal, its text part"),
            Model("llama", "Llama with LongRoPE: a model without any special care"),
        )
    }
)

# Paged attention exists for these.
_PAGED = ("eager", "sdpa", "flash_attention_2")
_WINDOWED = ("phi3", "phimoe", "phi4_multimodal")

SCENARIOS: Mapping[str, Scenario] = _by_name(
    (
        Scenario("below-boundary", "a decode that never leaves the short factors", core=True),
        Scenario(
            "decode-crossing", "a plain decode that grows past O", core=True, workarounds=_ALL
        ),
        Scenario("prompt-at-boundary", "a prompt of exactly O tokens", core=True, workarounds=_ALL),
        Scenario(
            "prompt-past-boundary", "a prompt of O+1 tokens", core=True, workarounds=("no-cache",)
        ),
        Scenario(
            "left-padded", "a batch with one padded row, crossing", core=True, workarounds=_ALL
        ),
        Scenario(
            "all-rows-padded", "a batch in which every row is padded, crossing", workarounds=_ALL
        ),
        Scenario("beam-search", "three beams, cached and uncached", workarounds=("no-cache",)),
        Scenario("sampling", "sampling with one seed, cached and uncached"),
        Scenario("static-cache", 'cache_implementation="static"', optional=True),
        Scenario(
            "inputs-embeds", "the prompt given as embeddings", optional=True, workarounds=_ALL
        ),
        Scenario("second-turn", "a cache from a first turn goes into a longer second one"),
        Scenario("continue-after-crossing", "the cache returned after a crossing is used again"),
        Scenario("chunked-prefill", "a prompt past O, prefilled in chunks", optional=True),
        Scenario(
            "assisted-decoding", "prompt look-up, a draft model, the model itself", optional=True
        ),
        Scenario("crop-back", "cross, crop the cache to below O, continue", optional=True),
        Scenario(
            "sliding-window",
            "a window smaller than O",
            optional=True,
            models=_WINDOWED,
            workarounds=_ALL,
        ),
        Scenario(
            "config-in-rope-dict", "O given only inside the rope dictionary", dtypes=("float32",)
        ),
        Scenario(
            "explicit-position-ids",
            "position_ids passed to generate",
            optional=True,
            workarounds=_ALL,
        ),
        Scenario("forward-loop", "a hand-written loop over forward with a cache"),
        Scenario(
            "rotary-probe", "the rotary tables at O-1, O, O+1, then O again", dtypes=("float32",)
        ),
        Scenario("regime-leak", "one instance fed short and long sequences in turn"),
        Scenario(
            "continuous-batching",
            "generate_batch, one request crossing and one not",
            optional=True,
            attentions=_PAGED,
        ),
        Scenario(
            "compiled",
            "torch.compile over changing lengths",
            optional=True,
            # Compiling takes seconds, and what it could bake in is the choice of factors, which
            # attention has no part in.
            attentions=("eager",),
        ),
        Scenario(
            "true-scale",
            "O = 4096, as in the published models",
            # It costs as much as all others together, and shows what they show at another scale.
            models=("phi3",),
        ),
    )
)


@dataclass(frozen=True)
class Case:
    """One scenario on one model, attention backend, device and dtype."""

    model: str
    scenario: str
    attention: str = "eager"
    device: str = "cpu"
    dtype: str = "float32"

    @property
    def id(self) -> str:
        """``MODEL/SCENARIO/ATTENTION/DEVICE/DTYPE``."""
        return "/".join((self.model, self.scenario, self.attention, self.device, self.dtype))

    @classmethod
    def parse(cls, text: str) -> Case:
        """The case that an id names.

        Raises:
            ValueError: it isn't one; the message says which part and what is allowed.
        """
        parts = text.strip().split("/")
        if len(parts) != 5:
            raise ValueError(
                f"case {text!r} has {len(parts)} parts, but an id is "
                "MODEL/SCENARIO/ATTENTION/DEVICE/DTYPE, "
                "e.g. phi3/decode-crossing/eager/cpu/float32"
            )
        model, scenario, attention, device, dtype = parts
        _check("model", [model], MODELS)
        _check("scenario", [scenario], SCENARIOS)
        _check("attention", [attention], ATTENTIONS)
        _check("device", [device], DEVICES)
        _check("dtype", [dtype], DTYPES)
        if not SCENARIOS[scenario].allows(model, attention, dtype):
            raise ValueError(f"case {text!r} means nothing: {scenario} has no such combination")
        return cls(model, scenario, attention, device, dtype)


def _check(kind: str, words: Iterable[str], allowed: Iterable[str]) -> None:
    allowed = list(allowed)
    for word in words:
        if word not in allowed:
            near = difflib.get_close_matches(word, allowed, n=1, cutoff=0.5)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise ValueError(f"unknown {kind} {word!r}{hint} Allowed: {', '.join(allowed)}")


def _expand(kind: str, words: Iterable[str], allowed: Iterable[str]) -> tuple[str, ...]:
    """``all`` stands for everything; order is that of *allowed*, duplicates fall away."""
    words, allowed = list(words), list(allowed)
    _check(kind, words, [*allowed, "all"])
    return tuple(name for name in allowed if "all" in words or name in words)


def expand_scenarios(words: Iterable[str]) -> tuple[str, ...]:
    """Scenario names in the order of the catalog; ``core`` and ``all`` are sets of them.

    Raises:
        ValueError: a word is none of them; the message has the nearest.
    """
    words = list(words)
    _check("scenario", words, [*SCENARIOS, "core", "all"])
    return tuple(
        name
        for name, entry in SCENARIOS.items()
        if "all" in words or name in words or ("core" in words and entry.core)
    )


def select_cases(
    scenarios: Iterable[str] = ("core",),
    models: Iterable[str] = ("phi3",),
    attentions: Iterable[str] = ("eager", "sdpa"),
    devices: Iterable[str] = ("cpu",),
    dtypes: Iterable[str] = ("float32",),
) -> tuple[Case, ...]:
    """Every meaningful case of the product, in a fixed order.

    Each list also takes ``all``, and *scenarios* takes ``core``.

    Raises:
        ValueError: naming the unknown word, what is allowed, and the nearest.
    """
    scenario_names = expand_scenarios(scenarios)
    attention_names = _expand("attention", attentions, ATTENTIONS)
    device_names = _expand("device", devices, DEVICES)
    dtype_names = _expand("dtype", dtypes, DTYPES)
    return tuple(
        Case(model, scenario, attention, device, dtype)
        for model in _expand("model", models, MODELS)
        for scenario in scenario_names
        for device in device_names
        for dtype in dtype_names
        for attention in attention_names
        if SCENARIOS[scenario].allows(model, attention, dtype)
    )
