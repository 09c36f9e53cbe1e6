"""CrewAI's agents on a stand-in model."""

# pyright: reportMissingImports=false, reportUntypedBaseClass=false

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("crewai", reason="the extra crewai is not installed; run make test-crewai")

from crewai.llms.base_llm import BaseLLM


class StandIn(BaseLLM):  # type: ignore[misc]
    """A model that is a function of what it reads."""

    rule: Any = None

    def call(self, messages: Any, *args: Any, **kwargs: Any) -> Any:
        listed = [{"content": messages}] if isinstance(messages, str) else messages
        answer = self.rule(" ".join(str(message.get("content")) for message in listed))
        if self.stream:
            for word in answer.split(" "):
                self._emit_stream_chunk_event(f"{word} ", from_agent=kwargs.get("from_agent"))
        return answer

    async def acall(self, messages: Any, *args: Any, **kwargs: Any) -> Any:
        return self.call(messages, *args, **kwargs)

    def supports_function_calling(self) -> bool:
        return False


def final(answer: str) -> str:
    return f"Thought: I now can give a great answer\nFinal Answer: {answer}"
