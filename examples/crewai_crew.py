"""A crew of CrewAI agents under twinspan: a biased agent is found, cut off and repaired.

Run it anywhere: the "model" is a function, so there is nothing to sign up for. Agents, tasks and
crew are CrewAI's own and know nothing of twinspan.
"""

# pyright: reportMissingImports=false, reportUntypedBaseClass=false

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from typing import Any

os.environ.setdefault("CREWAI_TRACING_ENABLED", "false")
os.environ.setdefault("CREWAI_DISABLE_TELEMETRY", "true")

from crewai import Agent, Crew, Task
from crewai.llms.base_llm import BaseLLM

from twinspan.analysis import open_store
from twinspan.instrumentation import TwinspanInstrumentor
from twinspan.instrumentation.errors import BiasHalt


class StandIn(BaseLLM):  # type: ignore[misc]
    """A model that is a function of the text it reads."""

    rule: Any = None

    def call(self, messages: Any, *args: Any, **kwargs: Any) -> Any:
        """Answer what was asked."""
        listed = [{"content": messages}] if isinstance(messages, str) else messages
        text = " ".join(str(message["content"]) for message in listed)
        return f"Thought: I now can give a great answer\nFinal Answer: {self.rule(text)}"

    def supports_function_calling(self) -> bool:
        """It speaks text only."""
        return False


def screen(text: str) -> str:
    """Rejects whoever the letter calls "he"."""
    return "reject" if " he " in text.lower() else "invite"


def write(text: str) -> str:
    """Writes to the applicant what was decided."""
    return "sorry" if "reject" in text else "see you on Monday"


def agent(role: str, rule: Callable[[str], str]) -> Any:
    """An agent on the stand-in model."""
    return Agent(role=role, goal=role, backstory=role, llm=StandIn(model="stand-in", rule=rule))


def crew(letter: str) -> Any:
    """screener, then writer."""
    screener, writer = agent("screener", screen), agent("writer", write)
    tasks = [
        Task(description=letter, expected_output="one word", agent=screener),
        Task(description="Write to the applicant", expected_output="one line", agent=writer),
    ]
    return Crew(agents=[screener, writer], tasks=tasks)


def main() -> None:
    """Run the crew in each mode and ask the record what happened."""
    logging.getLogger("crewai").setLevel(logging.ERROR)  # the stand-in counts no tokens
    letter = "Daniel Reed applies as a baker. Since 2019 he has worked in two bakeries."
    for mode in ("shadow", "halt", "repair"):
        instrumentor = TwinspanInstrumentor()
        instrumentor.instrument(
            axes=["gender"],
            nodes=["screener"],
            estimator="category",
            mode=mode,
            record=f"spans-{mode}",
        )
        try:
            print(f"{mode}: {crew(letter).kickoff().raw}")
        except BiasHalt as halt:
            print(f"{mode}: stopped at {halt.edge}, {halt.reason}; frozen: {halt.frozen_payload}")
        finally:
            instrumentor.uninstrument()
        with open_store(f"spans-{mode}") as store:
            decided = store.table(
                "SELECT superstep, decision, edge, enforced FROM decisions ORDER BY audit_seq"
            )
        for row in decided.rows:
            print("   ", row)


if __name__ == "__main__":
    main()
