"""``python -m reports.watch_issues``: open an issue for each new finding, once and no more.

An issue is known by the label and by the id in the first line of its body. One that is open is
brought up to date; one that somebody has closed stays closed, unless the finding is of a ref
that moves and has come up anew. Standard library only: it runs with a token that may write
issues, where nothing is installed. `decide` is pure; `Tracker` is the edge.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

LABEL: Final = "longrope-finding"
MOST_READ: Final = 1000
"""So many issues of that label are read, the newest: enough for some decades of findings."""
_MARKER: Final = re.compile(r"<!-- longrope-matrix finding ([0-9a-f]{12}) -->\s*(?:\n|$)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What is to be told; see `reports.watch_text.Issue`."""

    id: str
    title: str
    body: str
    new: bool
    recurs: bool
    ends: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """An issue that is there already.

    Attributes:
        number: Its number.
        open: Whether it is open.
        body: Its body.
    """

    number: int
    open: bool
    body: str

    @property
    def finding(self) -> str | None:
        """Id of the finding that it tells of. Only the first line is asked: others may quote."""
        found = _MARKER.match(self.body)
        return found[1] if found else None


class Verb(StrEnum):
    """What to do."""

    OPEN = "open"
    UPDATE = "update"
    REOPEN = "reopen"
    COMMENT = "comment"


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """One thing to do on the tracker.

    Attributes:
        verb: What to do.
        number: With which issue; None for one that is to be opened.
        title: Title of one to open.
        body: The new body, or the comment.
    """

    verb: Verb
    number: int | None = None
    title: str = ""
    body: str = ""


def decide(findings: Iterable[Finding], issues: Iterable[Known]) -> tuple[Action, ...]:
    """What to do so that each finding has the issue that it should have. Doing it twice is none."""
    known: dict[str, Known] = {}
    for one in sorted(issues, key=lambda one: (one.open, -one.number)):
        if one.finding is not None:
            known[one.finding] = one  # an open one outranks, then the oldest
    actions: list[Action] = []
    for finding in findings:
        there = known.get(finding.id)
        if there is None:
            if finding.new:
                actions.append(Action(verb=Verb.OPEN, title=finding.title, body=finding.body))
                actions += _told(finding, known)
        elif there.open:
            if _text(there.body) != _text(finding.body):
                actions.append(Action(verb=Verb.UPDATE, number=there.number, body=finding.body))
        elif finding.new and finding.recurs and _text(there.body) != _text(finding.body):
            actions.append(Action(verb=Verb.REOPEN, number=there.number, body=finding.body))
            actions += _told(finding, known)
    return tuple(actions)


def _told(finding: Finding, known: dict[str, Known]) -> list[Action]:
    """Tell the open issues of what this finding ends."""
    ended = [known[one] for one in finding.ends if one in known]
    text = f"It is over: {finding.title}. The scheduled run has opened an issue for that."
    return [Action(verb=Verb.COMMENT, number=one.number, body=text) for one in ended if one.open]


def _text(body: str) -> str:
    """A body as it compares: the tracker may store other line ends."""
    return "\n".join(line.rstrip() for line in body.strip().splitlines())


@dataclass(frozen=True, slots=True)
class Tracker:
    """The issues of the repository that `GH_REPO` names, by way of the command `gh`."""

    command: str = "gh"

    def issues(self) -> tuple[Known, ...]:
        """Every issue of our label, open and closed."""
        answer = self._run(
            *("issue", "list", "--label", LABEL, "--state", "all"),
            *("--limit", str(MOST_READ), "--json", "number,state,body"),
        )
        return tuple(
            Known(number=int(one["number"]), open=one["state"] == "OPEN", body=str(one["body"]))
            for one in json.loads(answer)
        )

    def do(self, action: Action) -> None:
        """Carry out one action. Texts go in by standard input, so that none is an option."""
        number = str(action.number)
        match action.verb:
            case Verb.OPEN:
                self._run(
                    *("issue", "create", "--label", LABEL, f"--title={action.title}"),
                    *("--body-file", "-"),
                    text=action.body,
                )
            case Verb.UPDATE:
                self._run("issue", "edit", number, "--body-file", "-", text=action.body)
            case Verb.REOPEN:
                self._run("issue", "edit", number, "--body-file", "-", text=action.body)
                self._run("issue", "reopen", number)
            case Verb.COMMENT:
                self._run("issue", "comment", number, "--body-file", "-", text=action.body)

    def prepare(self) -> None:
        """Make the label, if it is not there."""
        about = "Found by the scheduled run; do not edit the first line"
        self._run("label", "create", LABEL, "--force", "--description", about)

    def _run(self, *arguments: str, text: str = "") -> str:
        return subprocess.run(
            [self.command, *arguments], input=text, stdout=subprocess.PIPE, text=True, check=True
        ).stdout


def read_findings(path: Path) -> tuple[Finding, ...]:
    """Read what `python -m reports.watch` wrote."""
    content: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
    return tuple(
        Finding(
            id=one["id"],
            title=one["title"],
            body=one["body"],
            new=one["new"],
            recurs=one["recurs"],
            ends=tuple(one["ends"]),
        )
        for one in content
    )


def main(arguments: Sequence[str]) -> int:
    """Bring the tracker up to date; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m reports.watch_issues")
    parser.add_argument("--outcome", type=Path, default=Path("outcome"), metavar="DIR")
    parser.add_argument("--dry-run", action="store_true", help="only say what would be done")
    options = parser.parse_args(arguments)
    findings = read_findings(options.outcome / "findings.json")
    tracker = Tracker()
    actions = decide(findings, tracker.issues()) if findings else ()
    if actions and not options.dry_run:
        tracker.prepare()
    for action in actions:
        number = "" if action.number is None else f" #{action.number}"
        print(f"{action.verb}{number} {action.title}".rstrip())
        if not options.dry_run:
            tracker.do(action)
    print(f"{len(findings)} findings, {len(actions)} things to do")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
