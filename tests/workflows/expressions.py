"""The platform's expressions, as far as the workflows use them; anything else is a mistake."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

_TOKEN = re.compile(r"\s*('(?:[^']|'')*'|&&|\|\||==|!=|!|[()]|[A-Za-z_][\w.-]*)")
_OPERATORS = {"&&": " and ", "||": " or ", "!": " not ", "==": "==", "!=": "!="}
_WHOLE = re.compile(r"\$\{\{(.*?)\}\}", re.DOTALL)


def evaluate(expression: str, context: Mapping[str, Any]) -> Any:
    """The value of an expression; a name that nothing stands behind is an empty string.

    Raises:
        ValueError: It has something in it that this does not know.
    """
    source, position = "", 0
    expression = expression.strip()
    while position < len(expression):
        found = _TOKEN.match(expression, position)
        if found is None:
            raise ValueError(f"{expression!r}: not known from {expression[position:]!r} on")
        token, position = found[1], found.end()
        if token in _OPERATORS:
            source += _OPERATORS[token]
        elif token[0] in "'()":
            source += token
        elif expression[position:].lstrip().startswith("("):
            source += f"functions[{token!r}]"
        else:
            source += f"look({token!r})"
    functions = {
        "fromJSON": json.loads,
        "toJSON": json.dumps,
        "cancelled": lambda: False,
    }

    def look(name: str) -> Any:
        value: Any = context
        for part in name.split("."):
            value = value.get(part, "") if isinstance(value, dict) else ""
        return value

    return eval(source.strip(), {"__builtins__": {}}, {"functions": functions, "look": look})


def fill(text: str, context: Mapping[str, Any]) -> Any:
    """`text` with its expressions put in; one that is nothing but an expression keeps its type."""
    text = text.strip() if text.strip().startswith("${{") else text
    if (whole := _WHOLE.fullmatch(text)) and "${{" not in whole[1]:
        return evaluate(whole[1], context)
    return _WHOLE.sub(lambda found: str(evaluate(found[1], context)), text)


def condition(text: str, context: Mapping[str, Any]) -> bool:
    """Whether an ``if:`` holds."""
    whole = _WHOLE.fullmatch(text.strip())
    return bool(evaluate(whole[1] if whole else text, context))
