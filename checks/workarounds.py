"""What can be done without another release: each way is tried on the release it would be used on.

A workaround is a bench that drives the model otherwise. The same scenario runs on it, and the same
oracles judge what comes of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import torch

from checks import oracles
from checks.bench import Bench
from checks.catalog import SCENARIOS, Case
from checks.compare import Tolerance
from checks.errors import NotMeasured, from_compiler
from checks.judge import judge
from checks.observation import Run
from checks.reference import Reference
from checks.scenarios.registry import Plan


class NoCache(Bench):
    """Generates without a cache, so that every token is computed from the whole text."""

    def generate(
        self,
        tokens: torch.Tensor,
        new_tokens: int,
        *,
        mask: torch.Tensor | None = None,
        **options: Any,
    ) -> Run:
        """See :meth:`Bench.generate`."""
        return super().generate(tokens, new_tokens, mask=mask, **{**options, "use_cache": False})


class SecondCall(Bench):
    """Generates in two calls: the first ends one token past O, the second gets the whole text.

    The last token of the first call comes of a text of exactly O tokens, and the first forward of
    the second call is the first with the long factors, and begins without a cache.
    """

    def generate(
        self,
        tokens: torch.Tensor,
        new_tokens: int,
        *,
        mask: torch.Tensor | None = None,
        **options: Any,
    ) -> Run:
        """See :meth:`Bench.generate`."""
        mask = torch.ones_like(tokens) if mask is None else mask
        before = self.shape.original + 1 - int(mask.sum(dim=1).max())
        if not 0 < before < new_tokens:
            return super().generate(tokens, new_tokens, mask=mask, **options)
        first = super().generate(tokens, before, mask=mask, **options)
        added = first.output.sequences.cpu()[:, -before:]
        text = torch.cat([tokens, added], dim=1)
        mask = torch.cat([mask, torch.ones_like(added)], dim=1)
        options.pop("position_ids", None)  # they were those of the prompt; the mask tells the same
        return first + super().generate(text, new_tokens - before, mask=mask, **options)


BENCHES: Mapping[str, type[Bench]] = MappingProxyType(
    {"second-call": SecondCall, "no-cache": NoCache}
)


def tried(
    case: Case, plan: Plan, reference: Reference | None, tolerance: Tolerance
) -> dict[str, str]:
    """The status of *case* under each workaround that its scenario has.

    Args:
        reference: oracle R for the model of *case*.
    """
    return {
        name: _status(case, plan, BENCHES[name], reference, tolerance)
        for name in SCENARIOS[case.scenario].workarounds
    }


def _status(
    case: Case, plan: Plan, kind: type[Bench], reference: Reference | None, tolerance: Tolerance
) -> str:
    try:
        bench = kind.build(case, plan.shape)
        run = plan.run(bench)
        answers = oracles.ask(bench, run, reference, tolerance)
    except NotMeasured as stopped:
        return stopped.status
    except Exception as error:  # noqa: BLE001 - whatever a release does under it, it is no way out
        return "unsupported" if from_compiler(error) else "error"
    right = answers.reference
    status = judge(answers.uncached.agreement, None if right is None else right.agreement).status
    flawed = run.flaws or oracles.mischosen(run, answers, tolerance) is not None
    return "affected" if status == "ok" and flawed else status
