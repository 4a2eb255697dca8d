"""Defects and harmless changes, planted in a real release at run time.

Each plant takes the release's model class and changes how it generates. A model with O out of
reach (the negative control) is changed as well, and never meets the change.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any

import pytest
import torch

from checks import adapt, longrope
from checks.models import SPECS, TINY, Shape

Change = Callable[[pytest.MonkeyPatch, Any], None]


@dataclass(frozen=True)
class Plant:
    """One change.

    Attributes:
        name: what it does.
        expected: the defect's name, or ``ok`` where the change is harmless.
        scenario: where it must show.
        change: plants it in a model class.
    """

    name: str
    expected: str
    scenario: str
    change: Change


def original_of(model: Any) -> int:
    """O as the model's configuration has it."""
    held = adapt.rope_dictionary(model.config).get("original_max_position_embeddings")
    return int(held or model.config.original_max_position_embeddings)


def _change_forward(patch: pytest.MonkeyPatch, owner: Any, change: Callable[..., Any]) -> None:
    """Put *change* (model, forward, arguments, crossing) in the place of forward.

    ``crossing`` tells whether this forward runs the whole prefix again within a generation.
    """
    original = owner.forward

    @wraps(original)
    def forward(self: Any, *args: Any, **kwargs: Any) -> Any:
        ids = kwargs.get("input_ids", args[0] if args else None)
        generating = kwargs.get("use_cache") is not False and ids is not None
        if ids is None or not generating:
            return original(self, *args, **kwargs)
        cache = adapt.find_cache([*args, *kwargs.values()])
        total = ids.shape[1] + (0 if cache is None else adapt.cache_length(cache))
        crossing = ids.shape[1] > 1 and total == getattr(self, "planted_total", -1) + 1
        self.planted_total = total
        return change(self, lambda **given: original(self, **given), kwargs, crossing)

    generates = owner.generate

    @wraps(generates)
    def generate(self: Any, *args: Any, **kwargs: Any) -> Any:
        self.planted_total = -1  # what an earlier generation did is no part of this one
        return generates(self, *args, **kwargs)

    patch.setattr(owner, "forward", forward)
    patch.setattr(owner, "generate", generate)


def _at_crossing(changed: Callable[[dict[str, Any]], dict[str, Any]]) -> Change:
    """A plant that changes the arguments of the forward that runs the prefix again."""

    def plant(patch: pytest.MonkeyPatch, owner: Any) -> None:
        def change(_model: Any, forward: Any, kwargs: dict[str, Any], crossing: bool) -> Any:
            return forward(**(changed(kwargs) if crossing else kwargs))

        _change_forward(patch, owner, change)

    return plant


def _keep_one_token(kwargs: dict[str, Any]) -> dict[str, Any]:
    width = kwargs["input_ids"].shape[1]
    return {
        name: value[..., -1:]
        if isinstance(value, torch.Tensor) and value.shape[-1:] == (width,)
        else value
        for name, value in kwargs.items()
    }


def _see_everything(kwargs: dict[str, Any]) -> dict[str, Any]:
    rows, width = kwargs["input_ids"].shape
    return {**kwargs, "attention_mask": torch.zeros(rows, 1, width, width)}


def _lose_second_row(kwargs: dict[str, Any]) -> dict[str, Any]:
    mask = torch.ones_like(kwargs["input_ids"])
    mask[1, :-1] = 0
    return {**kwargs, "attention_mask": mask}


def _forget_padding(kwargs: dict[str, Any]) -> dict[str, Any]:
    return {**kwargs, "attention_mask": torch.ones_like(kwargs["input_ids"])}


def _on_logits(changed: Callable[[torch.Tensor, int, int], torch.Tensor]) -> Change:
    """A plant that changes the logits of generation, by (logits, tokens so far, O)."""

    def plant(patch: pytest.MonkeyPatch, owner: Any) -> None:
        def change(model: Any, forward: Any, kwargs: dict[str, Any], crossing: bool) -> Any:
            del crossing
            output = forward(**kwargs)
            output.logits = changed(output.logits, model.planted_total, original_of(model))
            return output

        _change_forward(patch, owner, change)

    return plant


def _not_a_number(logits: torch.Tensor, total: int, original: int) -> torch.Tensor:
    if total > original:
        logits = logits.clone()
        logits[0, -1, 7] = float("nan")
    return logits


def _noise(size: float, *, always: bool) -> Callable[[torch.Tensor, int, int], torch.Tensor]:
    def changed(logits: torch.Tensor, total: int, original: int) -> torch.Tensor:
        if not always and total <= original:
            return logits
        generator = torch.Generator().manual_seed(total)
        noise = torch.rand(logits.shape, generator=generator) * 2 - 1
        return logits + noise * size * logits.abs().amax(dim=-1, keepdim=True)

    return changed


def _raise_at_crossing(kwargs: dict[str, Any]) -> dict[str, Any]:
    raise RuntimeError(f"planted, with {sorted(kwargs)}")


def _clear_when(lengths: Callable[[int], tuple[int, ...]]) -> Change:
    """Clear the cache and run the whole prefix again at these total lengths, and only there."""

    def plant(patch: pytest.MonkeyPatch, owner: Any) -> None:
        generic = super(owner, owner).prepare_inputs_for_generation

        @wraps(owner.prepare_inputs_for_generation)
        def prepare(self: Any, input_ids: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
            if input_ids.shape[1] in lengths(original_of(self)):
                for name in [name for name, value in kwargs.items() if adapt.is_cache(value)]:
                    kwargs[name] = None
                if "next_sequence_length" in kwargs:
                    kwargs["next_sequence_length"] = None
                if kwargs.get("cache_position") is not None:
                    kwargs["cache_position"] = torch.arange(input_ids.shape[1])
            return generic(self, input_ids, *args, **kwargs)

        patch.setattr(owner, "prepare_inputs_for_generation", prepare)

    return plant


def _rename_cache(patch: pytest.MonkeyPatch, owner: Any) -> None:
    """Call the cache something else between the preparation of inputs and the forward."""
    prepare_before, forward_before = owner.prepare_inputs_for_generation, owner.forward
    names: dict[str, str] = {}

    @wraps(prepare_before)
    def prepare(self: Any, *args: Any, **kwargs: Any) -> Any:
        inputs = prepare_before(self, *args, **kwargs)
        for name in [name for name, value in inputs.items() if adapt.is_cache(value)]:
            names["memory_of_tokens"] = name
            inputs["memory_of_tokens"] = inputs.pop(name)
        return inputs

    @wraps(forward_before)
    def forward(self: Any, *args: Any, **kwargs: Any) -> Any:
        if "memory_of_tokens" in kwargs:
            kwargs[names["memory_of_tokens"]] = kwargs.pop("memory_of_tokens")
        return forward_before(self, *args, **kwargs)

    patch.setattr(owner, "prepare_inputs_for_generation", prepare)
    patch.setattr(owner, "forward", forward)


def _turn_batch_around(patch: pytest.MonkeyPatch, owner: Any) -> None:
    """Compute the rows in another order, and hand them back in theirs."""

    def change(_model: Any, forward: Any, kwargs: dict[str, Any], crossing: bool) -> Any:
        del crossing
        rows = kwargs["input_ids"].shape[0]
        turned = {
            name: value.flip(0)
            if isinstance(value, torch.Tensor) and value.dim() > 1 and value.shape[0] == rows
            else value
            for name, value in kwargs.items()
        }
        output = forward(**turned)
        output.logits = output.logits.flip(0)
        return output

    _change_forward(patch, owner, change)


def _tables(
    choose: Callable[[Any, int, int], bool], scaling: Callable[[Shape], float] | None = None
) -> Change:
    """Replace the rotary tables by right ones, with another choice of factors or scaling."""

    def plant(patch: pytest.MonkeyPatch, owner: Any) -> None:
        probe = owner(adapt.build_config(SPECS["phi3"], TINY, "eager"))
        part = next(part for part in probe.modules() if "RotaryEmbedding" in type(part).__name__)
        if not hasattr(part, "config"):
            pytest.skip("the rotary embedding of this release doesn't know its configuration")
        rotary = type(part)

        def forward(self: Any, x: torch.Tensor, position_ids: torch.Tensor, **_: Any) -> Any:
            original = original_of(self)
            shape = TINY if original == TINY.original else TINY.out_of_reach()
            long = choose(self, int(position_ids.max()) + 1, original)
            sets = torch.full(position_ids.shape, long, dtype=torch.bool)
            scale = None if scaling is None else scaling(shape)
            tables = longrope.rotary_tables(shape, position_ids.cpu(), sets, scale)
            return tuple(table.to(x.dtype) for table in tables)

        patch.setattr(rotary, "forward", forward)

    return plant


def _never_back(rotary: Any, length: int, original: int) -> bool:
    rotary.planted_long = getattr(rotary, "planted_long", False) or length > original
    return bool(rotary.planted_long)


def _return_short_cache(patch: pytest.MonkeyPatch, owner: Any) -> None:
    """Return a cache that lacks the last tokens, of a generation that has crossed."""
    before = owner.generate

    @wraps(before)
    def generate(self: Any, *args: Any, **kwargs: Any) -> Any:
        output = before(self, *args, **kwargs)
        if hasattr(output, "sequences") and output.sequences.shape[1] > original_of(self):
            for name, value in list(output.items()):
                if adapt.is_cache(value):
                    output[name] = adapt.crop_cache(value, adapt.cache_length(value) - 3)
        return output

    patch.setattr(owner, "generate", generate)


PLANTS = (
    Plant(
        "keeps one token of the prefix",
        "prefix_lost",
        "decode-crossing",
        _at_crossing(_keep_one_token),
    ),
    Plant(
        "keeps one token, prompt at O",
        "prefix_lost",
        "prompt-at-boundary",
        _at_crossing(_keep_one_token),
    ),
    Plant("loses one row's prefix", "prefix_lost", "left-padded", _at_crossing(_lose_second_row)),
    Plant("never clears", "stale_keys", "decode-crossing", _clear_when(lambda _: ())),
    Plant("never clears, padded", "stale_keys", "left-padded", _clear_when(lambda _: ())),
    Plant("never clears, beams", "stale_keys", "beam-search", _clear_when(lambda _: ())),
    Plant(
        "clears one token late", "stale_keys", "decode-crossing", _clear_when(lambda o: (o + 2,))
    ),
    Plant("drops the causal mask", "wrong_mask", "decode-crossing", _at_crossing(_see_everything)),
    Plant("forgets the padding", "wrong_mask", "left-padded", _at_crossing(_forget_padding)),
    Plant(
        "switches factors early",
        "wrong_factor",
        "decode-crossing",
        _tables(lambda _, n, o: n > o - 2),
    ),
    Plant(
        "switches factors late",
        "wrong_factor",
        "decode-crossing",
        _tables(lambda _, n, o: n > o + 2),
    ),
    Plant(
        "one token late", "wrong_factor", "prompt-past-boundary", _tables(lambda _, n, o: n > o + 1)
    ),
    Plant("never switches factors", "wrong_factor", "decode-crossing", _tables(lambda *_: False)),
    Plant("never switches back", "wrong_factor", "regime-leak", _tables(_never_back)),
    Plant("never switches back, tables", "wrong_factor", "rotary-probe", _tables(_never_back)),
    Plant(
        "drops the scaling",
        "wrong_scaling",
        "decode-crossing",
        _tables(lambda _, n, o: n > o, lambda _: 1.0),
    ),
    Plant(
        "scales otherwise",
        "wrong_scaling",
        "decode-crossing",
        _tables(lambda _, n, o: n > o, lambda _: 1.1234),
    ),
    Plant(
        "drops the scaling, tables",
        "wrong_scaling",
        "rotary-probe",
        _tables(lambda _, n, o: n > o, lambda _: 1.0),
    ),
    Plant(
        "returns a truncated cache",
        "truncated_cache",
        "continue-after-crossing",
        _return_short_cache,
    ),
    Plant("lets a NaN through", "non_finite", "decode-crossing", _on_logits(_not_a_number)),
    Plant("raises at the crossing", "crash", "decode-crossing", _at_crossing(_raise_at_crossing)),
    Plant(
        "is off by 2 percent",
        "unclassified",
        "decode-crossing",
        _on_logits(_noise(0.02, always=False)),
    ),
    Plant("nothing", "ok", "decode-crossing", lambda *_: None),
    Plant("right tables of its own", "ok", "decode-crossing", _tables(lambda _, n, o: n > o)),
    Plant("clears earlier", "ok", "decode-crossing", _clear_when(lambda o: (o - 1, o + 1))),
    Plant("runs the prefix twice", "ok", "decode-crossing", _clear_when(lambda o: (o + 1, o + 2))),
    Plant(
        "runs the prefix at each step",
        "ok",
        "left-padded",
        _clear_when(lambda o: tuple(range(o, o + 9))),
    ),
    Plant("rounding noise of 1e-6", "ok", "decode-crossing", _on_logits(_noise(1e-6, always=True))),
    Plant("another name for the cache", "ok", "decode-crossing", _rename_cache),
    Plant("another order of the batch", "ok", "left-padded", _turn_batch_around),
)
