"""An answer that no run of the agent gave, in the place of the frozen one."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Sequence
from typing import Any

from agents import ModelResponse
from openai.types.responses import ResponseOutputText

from twinspan.instrumentation.frameworks.openai_agents.answers import target_of


def revised(response: Any, answer: Any, handoffs: Sequence[Any]) -> Any:
    """A model's response with another answer; what the model thought on its way is gone.

    Args:
        response: the response, the SDK's own or that of a stream's last event.
        answer: the answer, in the form of `answer_of`.
        handoffs: the handoffs that the agent could ask for.
    """
    output = list(_items(response.output, answer, handoffs))
    if isinstance(response, ModelResponse):
        return dataclasses.replace(response, output=output)
    return response.model_copy(update={"output": output})


def _items(output: Sequence[Any], answer: Any, handoffs: Sequence[Any]) -> Iterator[Any]:
    hands_off = target_of(output, handoffs) is not None
    if not hands_off or "text" in answer:
        text = _text(answer["text"] if hands_off else answer)
        part = ResponseOutputText(annotations=[], text=text, type="output_text")
        said = [item for item in output if getattr(item, "type", "") == "message"]
        yield from (item.model_copy(update={"content": [part]}) for item in said[-1:])
    if hands_off:
        tools = {handoff.tool_name for handoff in handoffs}
        called = next(item for item in output if getattr(item, "name", None) in tools)
        yield called.model_copy(update=dict(_call(answer, handoffs)))


def _call(answer: Any, handoffs: Sequence[Any]) -> Iterator[tuple[str, str]]:
    """What a call of a handoff says; an agent that is not there is one that the SDK refuses."""
    to = str(answer["handoff"])
    yield "name", next((str(h.tool_name) for h in handoffs if h.agent_name == to), to)
    if "arguments" in answer:
        yield "arguments", _text(answer["arguments"])


def _text(answer: Any) -> str:
    return answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)
