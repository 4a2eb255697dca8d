"""Continuous batching: requests of different length packed into one forward."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from checks import adapt
from checks.bench import Bench
from checks.compare import relative_error
from checks.errors import CheckError
from checks.observation import Call, Run, Step
from checks.scenarios.registry import scenario

_NEW_TOKENS = 6


@dataclass(frozen=True)
class _Packed:
    """One forward over the tokens of several requests.

    Attributes:
        tokens, positions: (tokens,) of all requests one after the other, as far as their logits
            were asked for.
        logits: (tokens, vocabulary) float32.
    """

    tokens: torch.Tensor
    positions: torch.Tensor
    logits: torch.Tensor


@dataclass
class _Packer:
    """Collects the packed forwards of a model."""

    seen: list[_Packed] = field(default_factory=list)
    _fed: tuple[torch.Tensor, torch.Tensor] | None = None
    _kept: list[torch.Tensor] = field(default_factory=list)

    def before(self, _module: Any, _args: Any, kwargs: dict[str, Any]) -> None:
        ids, positions = kwargs.get("input_ids"), kwargs.get("position_ids")
        if ids is None or positions is None:
            raise CheckError("a packed forward without input_ids and position_ids")
        self._fed = ids.flatten().cpu().clone(), positions.flatten().cpu().clone()
        self._kept = [
            value.flatten().cpu().clone()
            for value in kwargs.values()
            if isinstance(value, torch.Tensor) and value.dtype in (torch.int32, torch.int64)
        ]

    def after(self, _module: Any, _args: Any, output: Any) -> None:
        if self._fed is None:
            raise CheckError("a packed forward ended that never began")
        logits = output.logits.detach().to(device="cpu", dtype=torch.float32, copy=True)
        logits = logits.reshape(-1, logits.shape[-1])
        tokens, positions = self._fed
        if logits.shape[0] != tokens.shape[0]:
            # Newer loops ask for the logits of some tokens only; which, is an argument as well.
            kept = next(
                (indices for indices in self._kept if self._chooses(indices, logits.shape[0])), None
            )
            if kept is None:
                raise CheckError("it can't be told which tokens the packed logits belong to")
            tokens, positions = tokens[kept.long()], positions[kept.long()]
        self.seen.append(_Packed(tokens, positions, logits))

    def _chooses(self, indices: torch.Tensor, count: int) -> bool:
        """Whether *indices* can be those of *count* of the fed tokens: rising, and within."""
        return (
            self._fed is not None
            and indices.shape[0] == count
            and bool((indices >= 0).all())
            and bool((indices < self._fed[0].shape[0]).all())
            and bool((indices[1:] > indices[:-1]).all())
        )


@scenario("continuous-batching")
def continuous_batching(bench: Bench) -> Run:
    """A server that packs requests: one crosses O while another stays below it."""
    prompts = [bench.prompt(bench.boundary - 2, rows=2)[0], bench.prompt(3, rows=2)[1]]
    # The serving loop turns the model to paged attention, so oracle U has one of its own.
    plain = Bench.build(bench.case, bench.base, crossing=bench.crossing)
    packer = _Packer()
    handles = [
        bench.model.register_forward_pre_hook(packer.before, with_kwargs=True),
        bench.model.register_forward_hook(packer.after),
    ]
    try:
        # The longer request makes most of its tokens; the shorter ends below O.
        texts = adapt.generate_batch(
            bench.model, [prompt.tolist() for prompt in prompts], _NEW_TOKENS - 1
        )
    finally:
        for handle in handles:
            handle.remove()
    steps = tuple(_steps(plain, packer.seen, prompts, texts))
    if not steps:
        raise CheckError("no forward of the serving loop could be told apart")
    calls = tuple(Call(fed=int(packed.tokens.shape[0]), cached=None) for packed in packer.seen)
    return Run(steps, calls)


def _steps(
    plain: Bench,
    seen: Sequence[_Packed],
    prompts: Sequence[torch.Tensor],
    texts: Sequence[Sequence[int]],
) -> Iterator[Step]:
    """The logits of each request's own tokens, told apart by token and position."""
    for number, packed in enumerate(seen):
        for index in range(packed.tokens.shape[0]):
            token, position = int(packed.tokens[index]), int(packed.positions[index])
            logits = packed.logits[index : index + 1]
            candidates = [
                _step(plain, text, position, logits, number)
                for prompt, text in zip(prompts, texts)
                if len(prompt) - 1 <= position < len(text) and text[position] == token
            ]
            if candidates:  # padding of the packed batch belongs to nobody
                yield min(candidates, key=_error)


def _step(
    plain: Bench, text: Sequence[int], position: int, logits: torch.Tensor, call: int
) -> Step:
    tokens = torch.tensor([list(text[: position + 1])])
    mask = torch.ones_like(tokens)
    return Step(tokens, mask, logits, call, expected=plain.uncached(tokens, mask))


def _error(step: Step) -> float:
    if step.expected is None:
        raise CheckError("a packed step without its expected logits")
    return float(relative_error(step.logits, step.expected).max())
