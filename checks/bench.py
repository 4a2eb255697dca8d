"""The bench on which a scenario runs: one model of one shape, and the means to drive it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from checks import adapt
from checks.catalog import Case
from checks.errors import CheckError
from checks.models import PAD, SPECS, ModelSpec, Shape, random_prompt
from checks.observation import Recorder, Run, Step

DTYPES = {
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
}


def positions_of(mask: torch.Tensor) -> torch.Tensor:
    """Position of each token among the real ones of its row; 0 under padding. Shapes alike."""
    return (mask.long().cumsum(dim=-1) - 1).clamp_min(0)


@dataclass(frozen=True)
class Bench:
    """One model ready to be driven to the crossing.

    Attributes:
        case: what is measured.
        spec: the model's names and options.
        shape: its size; ``shape.original`` is O as the model knows it.
        base: the plain shape it was made from.
        crossing: whether O is within reach. The negative control gives the model a larger O and
            leaves the lengths as they are.
        model: the release's model with our weights.
    """

    case: Case
    spec: ModelSpec
    shape: Shape
    base: Shape
    crossing: bool
    model: Any

    @classmethod
    def build(cls, case: Case, base: Shape, *, crossing: bool = True) -> Bench:
        """A bench for *case* with a model of *base*; without *crossing*, its negative control.

        Raises:
            Unsupported: this release lacks the model, the feature or the backend.
        """
        spec = SPECS[case.model]
        shape = spec.shape(base)
        if not crossing:
            shape = shape.out_of_reach()
        model = adapt.build_model(spec, shape, case.attention, case.device, DTYPES[case.dtype])
        return cls(case, spec, shape, base, crossing, model)

    @property
    def boundary(self) -> int:
        """O as the scenario counts its lengths, whatever the model's own is."""
        return self.base.original

    def prompt(self, length: int, rows: int = 2, stream: str = "prompt") -> torch.Tensor:
        """Random ids, (rows, length); a longer prompt begins with the shorter one."""
        longest = max(64, length)
        return random_prompt(rows, longest, stream=stream)[:, :length].contiguous()

    def left_padded(self, lengths: Sequence[int]) -> tuple[torch.Tensor, torch.Tensor]:
        """Random rows of these real lengths, padded on the left to one width, and their mask."""
        width = max(lengths)
        return self.padded_to(width, lengths)

    def padded_to(self, width: int, lengths: Sequence[int]) -> tuple[torch.Tensor, torch.Tensor]:
        """Like :meth:`left_padded`, with *width* columns."""
        tokens = self.prompt(width, rows=len(lengths)).clone()
        mask = torch.ones_like(tokens)
        for row, length in enumerate(lengths):
            tokens[row, : width - length] = PAD
            mask[row, : width - length] = 0
        return tokens, mask

    def to_device(self, tensor: torch.Tensor) -> torch.Tensor:
        """*tensor* on the case's device."""
        return tensor.to(self.case.device)

    def uncached(self, tokens: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Oracle U: one forward over the whole prefix, without a cache.

        Args:
            tokens, mask: (rows, length).

        Returns:
            Logits at the last position, (rows, vocabulary) float32.
        """
        return self.uncached_at(tokens, mask, [tokens.shape[1]])[0]

    def uncached_at(
        self, tokens: torch.Tensor, mask: torch.Tensor, lengths: Sequence[int]
    ) -> list[torch.Tensor]:
        """Oracle U after several prefixes of one text that have the same set of factors."""
        output = adapt.call(
            self.model,
            input_ids=self.to_device(tokens),
            attention_mask=self.to_device(mask),
            position_ids=self.to_device(positions_of(mask)),
            use_cache=False,
        )
        return [adapt.logits_after(output, length - 1) for length in lengths]

    def uncached_through(self, tokens: torch.Tensor, lengths: Sequence[int]) -> list[torch.Tensor]:
        """Oracle U after rising *lengths* of one text without padding, under the set of each."""
        mask = torch.ones_like(tokens)
        logits: list[torch.Tensor] = []
        for long in (False, True):
            asked = [length for length in lengths if (length > self.shape.original) is long]
            if asked:
                logits += self.uncached_at(tokens[:, : asked[-1]], mask[:, : asked[-1]], asked)
        return logits

    def own(self, run: Run) -> Run:
        """*run* with the answers of this bench's model as those of oracle U."""
        steps = tuple(
            replace(step, expected=self.uncached(step.tokens, step.mask)) for step in run.steps
        )
        return replace(run, steps=steps)

    def generate(
        self,
        tokens: torch.Tensor,
        new_tokens: int,
        *,
        mask: torch.Tensor | None = None,
        as_embeddings: bool = False,
        drafted: bool = False,
        **options: Any,
    ) -> Run:
        """Let the release generate, and watch.

        Args:
            tokens, mask: the prompt, (rows, length), padded on the left.
            new_tokens: how many to generate; there is no end of sequence.
            as_embeddings: give the prompt as embeddings, not as ids.
            drafted: others propose tokens; what they say isn't judged.
            options: passed to ``generate``.

        Raises:
            CheckError: the release generated, and nothing of it could be seen.
        """
        mask = torch.ones_like(tokens) if mask is None else mask
        recorder = Recorder(drafted)
        settings: dict[str, Any] = {
            "max_new_tokens": new_tokens,
            "do_sample": False,
            "use_cache": True,
            "pad_token_id": PAD,
            "return_dict_in_generate": True,
            **adapt.uncompiled(self.model),
            **options,
        }
        ids = self.to_device(tokens)
        if as_embeddings:
            with torch.no_grad():
                settings["inputs_embeds"] = self.model.get_input_embeddings()(ids)
        else:
            settings["input_ids"] = ids
        with recorder.watching(self.model), torch.no_grad():
            output = self.model.generate(
                attention_mask=self.to_device(mask),
                logits_processor=adapt.logits_processor(recorder.observe),
                **settings,
            )
        steps = tuple(
            self._step(tokens, mask, *seen, has_prompt=not as_embeddings) for seen in recorder.seen
        )
        if not steps:
            raise CheckError("generate never showed its logits to a logits processor")
        return Run(
            steps=steps,
            calls=tuple(recorder.calls),
            chosen=self._chosen(output.sequences.cpu(), steps, settings),
            output=output,
        )

    def _step(
        self,
        prompt: torch.Tensor,
        prompt_mask: torch.Tensor,
        ids: torch.Tensor,
        scores: torch.Tensor,
        call: int,
        *,
        has_prompt: bool,
    ) -> Step:
        repeats = ids.shape[0] // prompt.shape[0]  # beams of a prompt are neighbours
        prompt = prompt.repeat_interleave(repeats, dim=0)
        prompt_mask = prompt_mask.repeat_interleave(repeats, dim=0)
        tokens = ids if has_prompt else torch.cat([prompt, ids], dim=1)
        grown = tokens.shape[1] - prompt.shape[1]
        mask = torch.cat([prompt_mask, torch.ones(tokens.shape[0], grown, dtype=torch.long)], dim=1)
        # Beam search shows log-probabilities, the others logits: see which it is.
        normalized = bool((scores.exp().sum(dim=-1) - 1).abs().max() < 1e-3)
        return Step(tokens, mask, scores, call, normalized)

    def _chosen(
        self, sequences: torch.Tensor, steps: Sequence[Step], settings: dict[str, Any]
    ) -> tuple[torch.Tensor, ...]:
        """The tokens chosen after each step, where the choice is greedy and plain."""
        new = settings["max_new_tokens"]
        plain = (
            not settings["do_sample"]
            and settings.get("num_beams", 1) == 1
            and len(steps) == new
            and sequences.shape[1] >= new
        )
        if not plain:
            return ()
        return tuple(sequences[:, sequences.shape[1] - new + i] for i in range(new))

    def forward_step(
        self,
        tokens: torch.Tensor,
        mask: torch.Tensor,
        recorder: Recorder,
        **arguments: Any,
    ) -> tuple[Step, Any]:
        """One forward by hand over the last columns of a prefix, and what it returned.

        Args:
            tokens, mask: the whole prefix, (rows, length).
            arguments: given to the model, ``input_ids`` among them.
        """
        with recorder.watching(self.model):
            output = adapt.call(self.model, **arguments)
        logits = adapt.logits_after(output)
        return Step(tokens, mask, logits, len(recorder.calls) - 1), output
