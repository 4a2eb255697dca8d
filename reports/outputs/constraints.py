"""constraints.txt: what to point `pip install -c` at."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reports.escape import one_line

if TYPE_CHECKING:
    from reports.view import View


def constraints_txt(view: View) -> bytes:
    """The specifier of the first model, if its releases are right in the core ways of use.

    Anything less is a comment: a constraint must not pin somebody to a release that is wrong.
    """
    lines = [f"# {view.headline} ({view.date})", f"# {view.measured}"]
    for index, model in enumerate(view.models):
        advice = model.advice
        lines.extend(["#", f"# {advice.lead}"])
        lines.extend(f"# {note}" for note in advice.notes)
        if advice.requirement:
            usable = index == 0 and advice.look in ("all", "most")
            lines.append(advice.requirement if usable else f"# {advice.requirement}")
    text = "\n".join(one_line(line) for line in lines)
    return f"{text}\n".encode()
