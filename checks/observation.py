"""What is seen while a release generates: the logits of every step, and every forward's feed.

Generation is watched through its own public means. A logits processor sees each prefix and the
logits that the release computed for it, in greedy search, sampling, beams and assisted decoding
alike; hooks on the model see what each forward was fed. Neither changes anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from checks import adapt


@dataclass(frozen=True)
class Call:
    """One forward of the model.

    Attributes:
        fed: tokens it was given, for each row.
        cached: tokens in the cache it was given, None where it was given no cache.
        input_ids, position_ids: as it was given them, (rows, fed), or None.
    """

    fed: int
    cached: int | None
    input_ids: torch.Tensor | None = None
    position_ids: torch.Tensor | None = None

    def __str__(self) -> str:
        """The bug report's form, e.g. ``([[32], [59]], [[8], [8]], None)``."""
        return f"({_short(self.input_ids)}, {_short(self.position_ids)}, {self.cached})"


def _short(ids: torch.Tensor | None, most: int = 12) -> str:
    if ids is None:
        return "None"
    rows = []
    for row in ids.reshape(-1, ids.shape[-1])[:4].tolist():
        shown = [str(i) for i in row]
        if len(shown) > most:
            shown = [*shown[:2], f"... {len(row) - 4} more ...", *shown[-2:]]
        rows.append(f"[{', '.join(shown)}]")
    return f"[{', '.join(rows)}]"


@dataclass(frozen=True)
class Step:
    """The logits that the release gave after a prefix.

    Attributes:
        tokens: the prefix with its padding, (rows, length) int64.
        mask: 1 at real tokens, 0 at padding, (rows, length) int64.
        logits: (rows, vocabulary) float32, on the CPU; log-probabilities where *normalized*.
        call: index of the forward they came from, or None.
        expected: logits that stand for the uncached oracle here, where the scenario has its own.
    """

    tokens: torch.Tensor
    mask: torch.Tensor
    logits: torch.Tensor
    call: int | None = None
    normalized: bool = False
    expected: torch.Tensor | None = None

    @property
    def length(self) -> int:
        """Tokens of the prefix, padding included."""
        return int(self.tokens.shape[1])

    @property
    def real_length(self) -> int:
        """Tokens of the longest row without its padding, by which the factors are chosen."""
        return int(self.mask.sum(dim=1).max())


@dataclass(frozen=True)
class Flaw:
    """Something wrong that shows beside the logits, e.g. a cache that is too short."""

    defect: str
    message: str
    error: float | None = None


@dataclass(frozen=True)
class Run:
    """All that one pass of a scenario saw.

    Attributes:
        steps: judged by the oracles, in order.
        calls: every forward, in order.
        chosen: the tokens that generation chose after each step, (rows,) each; empty where the
            choice isn't greedy.
        flaws: what is wrong beside the logits.
        reference_error: where a scenario compares something else than logits with the reference,
            the largest relative error.
        notes: facts for the reader of the record that decide nothing.
        output: what generate returned.
    """

    steps: tuple[Step, ...] = ()
    calls: tuple[Call, ...] = ()
    chosen: tuple[torch.Tensor, ...] = ()
    flaws: tuple[Flaw, ...] = ()
    reference_error: float | None = None
    notes: tuple[str, ...] = ()
    output: Any = None

    def __add__(self, other: Run) -> Run:
        """This run and then *other*, as one."""
        offset = len(self.calls)
        moved = tuple(
            replace(step, call=None if step.call is None else step.call + offset)
            for step in other.steps
        )
        return replace(
            other,
            steps=self.steps + moved,
            calls=self.calls + other.calls,
            chosen=self.chosen + other.chosen if self.chosen and other.chosen else (),
            flaws=self.flaws + other.flaws,
            notes=self.notes + other.notes,
        )


@dataclass
class Recorder:
    """Collects the calls of a model, and the prefixes and scores of its generation.

    Attributes:
        drafted: others take part in the generation. A draft model's logits, and the made-up ones
            by which a look-up filters its drafts, pass the same logits processor; only those are
            kept that the model's last forward gave.
    """

    drafted: bool = False
    calls: list[Call] = field(default_factory=list)
    seen: list[tuple[torch.Tensor, torch.Tensor, int]] = field(default_factory=list)
    _given: torch.Tensor | None = None

    def observe(self, input_ids: torch.Tensor, scores: torch.Tensor) -> None:
        """One prefix and its scores, from the logits processor."""
        scores = scores.detach().to(device="cpu", dtype=torch.float32, copy=True)
        if self.drafted and not self._gave(scores):
            return
        self.seen.append((input_ids.detach().cpu().clone(), scores, len(self.calls) - 1))

    def _gave(self, scores: torch.Tensor) -> bool:
        if self._given is None or self._given.shape[0] != scores.shape[0]:
            return False
        return bool((self._given == scores[:, None]).all(dim=-1).all(dim=0).any())

    def _after(self, _module: Any, _args: Any, output: Any) -> None:
        self._given = output.logits.detach().to(device="cpu", dtype=torch.float32)

    def _before(self, _module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        cache = adapt.find_cache([*args, *kwargs.values()])
        ids = kwargs.get("input_ids", args[0] if args else None)
        fed = ids if ids is not None else kwargs.get("inputs_embeds")
        positions = kwargs.get("position_ids")
        self.calls.append(
            Call(
                fed=0 if fed is None else int(fed.shape[1]),
                cached=None if cache is None else adapt.cache_length(cache),
                input_ids=_copy(ids),
                position_ids=_copy(positions),
            )
        )

    @contextmanager
    def watching(self, model: torch.nn.Module) -> Iterator[None]:
        """Watch every forward of *model*."""
        handles = [model.register_forward_pre_hook(self._before, with_kwargs=True)]
        if self.drafted:
            handles.append(model.register_forward_hook(self._after))
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()


def _copy(value: Any) -> torch.Tensor | None:
    return value.detach().cpu().clone() if isinstance(value, torch.Tensor) else None


def short_trace(calls: Sequence[Call], most: int = 14) -> str:
    """Tokens fed and cached in each forward: ``4+0 1+4 1+5 ... 9+0 1+9``.

    Plain steps, which feed one token more than the last cached one, are left out where the trace
    would get long.
    """
    words = [f"{call.fed}+{call.cached or 0}" for call in calls]
    if len(words) <= most:
        return " ".join(words)
    kept: list[str] = []
    for index, word in enumerate(words):
        plain = (
            1 < index < len(words) - 2
            and calls[index].fed == 1
            and (calls[index].cached or 0) == (calls[index - 1].cached or 0) + calls[index - 1].fed
        )
        if not plain:
            kept.append(word)
        elif kept[-1] != "...":
            kept.append("...")
    return " ".join(kept[:most] + (["..."] if len(kept) > most else []))
