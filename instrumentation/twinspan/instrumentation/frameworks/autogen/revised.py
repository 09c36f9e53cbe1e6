"""An answer that no run of the agent gave, in the place of the frozen one."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from autogen_agentchat.base import Response
from pydantic import BaseModel, ValidationError

from twinspan.instrumentation.narrowing import as_mapping, as_sequence


def revised(response: Any, answer: Any) -> Response:
    """The response with another answer; what the agent did on its way to the frozen one is gone.

    Args:
        response: the agent's response.
        answer: the answer, in the form of `answer_of`.
    """
    message = response.chat_message
    said = {"content": answer}
    if getattr(message, "target", None) is not None:
        said = {"target": answer["handoff"], "content": answer["content"]}
    return Response(chat_message=message.model_copy(update=said), inner_messages=[])


async def remember(agent: Any, frozen: Any, answer: Any) -> None:
    """Have an agent remember an answer instead of the frozen one.

    Args:
        agent: the agent; what it saves of its state is loaded again.
        frozen: the content of the message that is not handed on.
        answer: the content of the one that is.
    """
    state = copy.deepcopy(dict(await agent.save_state()))
    said = [message for message in _messages(state) if _says(message["content"], frozen)]
    if said:
        said[-1]["content"] = _text(answer)
        await agent.load_state(state)


def _messages(state: Any) -> Iterator[dict[str, Any]]:
    """Whatever has content within a saved state, first to last."""
    mapping = as_mapping(state)
    if mapping is None:
        for item in as_sequence(state) or ():
            yield from _messages(item)
        return
    if isinstance(mapping.get("content"), str):
        yield state
    for value in mapping.values():
        yield from _messages(value)


def _says(text: str, content: Any) -> bool:
    if not isinstance(content, BaseModel):
        return bool(text == content)
    try:
        return bool(type(content).model_validate_json(text) == content)
    except ValidationError:
        return False


def _text(content: Any) -> Any:
    return content.model_dump_json() if isinstance(content, BaseModel) else content
