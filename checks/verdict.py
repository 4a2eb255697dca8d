"""``python -m checks --verdict``: am I affected, and what can I do about it today?

The cases are measured in this very environment, and told to a person. Needs no pytest.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from checks.catalog import SCENARIOS, WORKAROUNDS, Case
from checks.configuration import Configuration
from checks.limits import measure_within
from checks.result import Result

_SYMBOLS = {"ok": "✓", "affected": "✕"}


def scenarios_for(given: Configuration, chosen: Sequence[str]) -> list[str]:
    """The chosen scenarios, and those that this configuration makes matter."""
    more = []
    if given.only_in_rope_dict:
        more.append("config-in-rope-dict")
    if given.window is not None and given.window < given.original:
        more.append("sliding-window")
    return [*chosen, *(name for name in more if name not in chosen)]


def measure_all(cases: Iterable[Case], limit: float) -> list[Result]:
    """Measure the cases here, telling each as it ends."""
    results = []
    for case in cases:
        result = measure_within(case, limit)
        results.append(result)
        print(line_of(result), flush=True)
    return results


def environment_line() -> str:
    """What is measured, with its versions."""
    from checks.environment import describe_environment

    found = describe_environment()
    return f"transformers {found['transformers']}, torch {found['torch']}, Python {found['python']}"


def configuration_lines(given: Configuration) -> list[str]:
    """What the file says."""
    longest = "" if given.longest is None else f" of {given.longest:,}"
    return [
        f"{given.path}: {given.model}, LongRoPE, O = {given.original:,}{longest} tokens",
        "Measured on tiny models of this kind with an O of 8, where the library does the same.",
    ]


def misreading(given: Configuration) -> str | None:
    """What this release makes of the file, where that isn't what it says."""
    read = _original_as_read(given)
    if read is None or read == given.original:
        return None
    return (
        f"this release reads O = {read:,} out of {given.path}, and {given.original:,} is meant: "
        "give original_max_position_embeddings at the top level of the configuration as well"
    )


def _original_as_read(given: Configuration) -> int | None:
    """O as this release has it after loading the file; None where it doesn't tell."""
    from checks.adapt import load_classes, rope_dictionary
    from checks.models import SPECS

    try:
        config_class = load_classes(SPECS[given.model]).config
        config = config_class.from_dict(json.loads(given.path.read_text(encoding="utf-8")))
    except Exception as error:  # noqa: BLE001 - a release may refuse a file in any way
        print(f"This release does not load {given.path}: {type(error).__name__}: {error}")
        return None
    outside = getattr(config, "original_max_position_embeddings", None)
    inside = rope_dictionary(config).get("original_max_position_embeddings")
    read = outside if outside is not None else inside
    return None if read is None else int(read)


def line_of(result: Result) -> str:
    """One case in one line."""
    symbol = _SYMBOLS.get(result.status, "?")
    words = [result.status]
    if result.defect is not None:
        words.append(result.defect)
    elif result.reason is not None:
        words.append(result.reason)
    where = f"{result.case.model} {result.case.scenario} {result.case.attention}"
    error = result.evidence.get("error")
    tail = f"  error {error:g}" if isinstance(error, float) else ""
    return f"{symbol} {where:<46} {': '.join(words)}{tail}"


def closing_lines(
    results: Sequence[Result], given: Configuration | None, misread: str | None = None
) -> list[str]:
    """The verdict, and what helps.

    Args:
        misread: what the release makes of the configuration, where that is wrong.
    """
    affected = [result for result in results if result.status == "affected"]
    boundary = "original_max_position_embeddings" if given is None else f"{given.original:,} tokens"
    lines = [] if misread is None else [f"AFFECTED: {misread}."]
    if not affected:
        return lines or _not_affected(results, boundary)
    defects = ", ".join(dict.fromkeys(str(result.defect) for result in affected))
    lines += [
        f"AFFECTED ({defects}): once a text grows past {boundary}, this goes wrong here in:",
        *(f"  {name}: {SCENARIOS[name].summary}" for name in _names(affected)),
    ]
    helps = _what_helps(affected)
    if helps and given is not None:
        helps.append(f"  O is original_max_position_embeddings, {given.original:,} here.")
    lines += helps
    lines.append(
        "`nox -s report` shows which releases are right. A script that shows a case upstream: "
        f"python -m checks --reproduce {affected[0].case.id}"
    )
    return lines


def _not_affected(results: Sequence[Result], boundary: str) -> list[str]:
    open_ = [result for result in results if result.status not in ("ok", "unsupported")]
    right = [result for result in results if result.status == "ok"]
    if open_ or not right:
        return ["NOT DECIDED: nothing went wrong, and not every case gave an answer."]
    names = ", ".join(_names(right))
    return [
        f"NOT AFFECTED in {names}: generation past {boundary} agrees with the model.",
        "Other ways of use: --scenarios all",
    ]


def _what_helps(affected: Sequence[Result]) -> list[str]:
    """Each workaround with the cases in which it is right, and in which not."""
    lines = []
    for name, workaround in WORKAROUNDS.items():
        tried = [
            (result.case.scenario, result.evidence["workarounds"][name])
            for result in affected
            if name in result.evidence.get("workarounds", {})
        ]
        if not tried:
            continue
        wrong = dict.fromkeys(scenario for scenario, status in tried if status != "ok")
        right = dict.fromkeys(scenario for scenario, status in tried if scenario not in wrong)
        words = []
        if right:
            words.append(f"right in {', '.join(right)}")
        if wrong:
            words.append(f"not right in {', '.join(wrong)}")
        symbol = "✓" if right and not wrong else "✕" if wrong and not right else "?"
        lines.append(f"  {symbol} {workaround.summary}: {'; '.join(words)}")
    if lines:
        lines.insert(0, "Without another release, tried here and now:")
    return lines


def _names(results: Iterable[Result]) -> list[str]:
    return list(dict.fromkeys(result.case.scenario for result in results))
