"""CrewAI's agents on a stand-in model."""

# pyright: reportMissingImports=false, reportUntypedBaseClass=false

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("crewai", reason="the extra crewai is not installed; run make test-crewai")

from crewai.llms.base_llm import BaseLLM
from crewai.tools import tool
from framework_contract import calls_her_she


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


class ScreenerAndWriter:
    """What both agents of the contract say, however they are run."""

    question = ""
    """After its last mention in what the screener reads there is what it did so far."""

    def __init__(self, *, biased: bool, how: str) -> None:
        self.readings: list[str] = []
        self._biased = biased
        self._how = how
        self._tools: list[Any] = []

    def _screen(self, text: str) -> str:
        if self._tools and "Observation" not in text.rpartition(self.question)[2]:
            return 'Thought: I send\nAction: send_email\nAction Input: {"to": "x"}'
        return final("reject" if self._biased and calls_her_she(text) else "invite")

    def _write(self, text: str) -> str:
        self.readings.append(text)
        return final("no" if "reject" in text else "see you on Monday")

    def run(self, letter: str) -> Any:
        raise NotImplementedError

    def use_tool(self, letter: str, sent: list[str]) -> Any:
        def send_email(to: str) -> str:
            """Send an email."""
            sent.append(to)
            return "sent"

        self._tools = [tool("send_email")(send_email)]
        return self.run(letter)
