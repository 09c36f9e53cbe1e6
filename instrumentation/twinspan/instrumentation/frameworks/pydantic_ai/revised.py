"""An output that no run of the agent gave, in the place of the frozen one."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any, Final

from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_core import to_json, to_jsonable_python

from twinspan.instrumentation.narrowing import as_mapping

_WRAPPED: Final = "response"
"""The argument of an output tool whose output is no object."""


def revised(result: Any, output: Any) -> Any:
    """A run's result with another output, in its messages too.

    Args:
        result: the run's result.
        output: the output, of the same type.
    """
    other = copy.copy(result)
    history = list(result._state.message_history)
    at = max((i for i, each in enumerate(history) if isinstance(each, ModelResponse)), default=None)
    if at is not None:
        parts = list(_parts(history[at].parts, output, result._output_tool_name))
        history[at] = dataclasses.replace(history[at], parts=parts)
    other._state = dataclasses.replace(result._state, message_history=history)
    other.output = output
    return other


def _parts(parts: Sequence[Any], output: Any, tool: str | None) -> Iterator[Any]:
    """What the model said last: the output; not what it thought and said on its way there."""
    calls: list[Any] = [part for part in parts if isinstance(part, ToolCallPart)]
    for call in calls:
        is_output = call.tool_name == tool
        yield dataclasses.replace(call, args=_arguments(output)) if is_output else call
    if tool is None:
        yield TextPart(output if isinstance(output, str) else to_json(output).decode())


def _arguments(output: Any) -> dict[str, Any]:
    plain = to_jsonable_python(output)
    return plain if as_mapping(plain) is not None else {_WRAPPED: plain}
