"""A model's response as an agent's answer, and the calls it asks for."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

_CALL: Final = "_call"
"""How the types of output items end that ask for a tool, `function_call`, `shell_call`."""

_HOSTED: Final = frozenset(
    {"web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call"}
)
"""Tools that the model's server has run by the time its response is here."""


def tools_asked_for(output: Sequence[Any], handoffs: Sequence[Any]) -> list[str]:
    """Names of the tools that this process is to run next."""
    targets = {handoff.tool_name for handoff in handoffs}
    asked = ((str(getattr(item, "type", "")), getattr(item, "name", None)) for item in output)
    return [
        str(name or kind)
        for kind, name in asked
        if kind.endswith(_CALL) and kind not in _HOSTED and name not in targets
    ]


def is_answer(output: Sequence[Any], handoffs: Sequence[Any]) -> bool:
    """Whether a response ends the agent's part of the run."""
    return not tools_asked_for(output, handoffs)


def target_of(output: Sequence[Any], handoffs: Sequence[Any]) -> str | None:
    """The agent that a response hands off to; None where it does not."""
    called = {str(getattr(item, "name", "")) for item in output}
    return next((str(h.agent_name) for h in handoffs if h.tool_name in called), None)


def answer_of(output: Sequence[Any], handoffs: Sequence[Any]) -> Any:
    """What an agent answered: its text or structured output, or where it hands off with what."""
    target = target_of(output, handoffs)
    text = "".join(_texts(output))
    if target is None:
        return _structured(text)
    told = next(
        (_structured(item.arguments) for item in output if hasattr(item, "arguments")), None
    )
    answer: dict[str, Any] = {"handoff": target}
    if told:
        answer["arguments"] = told
    if text:
        answer["text"] = text
    return answer


def _texts(output: Sequence[Any]) -> Iterator[str]:
    for item in output:
        for part in getattr(item, "content", None) or ():
            text = getattr(part, "text", None) or getattr(part, "refusal", None)
            if getattr(item, "type", "") == "message" and isinstance(text, str):
                yield text


def _structured(text: str) -> Any:
    """A JSON object as what it says; any other text as it is.

    >>> _structured('{"advice": "refer"}'), _structured("refer")
    ({'advice': 'refer'}, 'refer')
    """
    if not text.startswith("{"):
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text
