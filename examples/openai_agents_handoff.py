"""Agents of the OpenAI Agents SDK under twinspan: a biased handoff is found, cut and repaired.

Run it anywhere: the "model" is a function, so there is nothing to sign up for. The agents are the
SDK's own and know nothing of twinspan.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

from agents import Agent, Model, ModelResponse, Runner, Usage, set_tracing_disabled
from agents.testing import assistant_message, function_call

from twinspan.analysis import open_store
from twinspan.instrumentation import TwinspanInstrumentor
from twinspan.instrumentation.errors import BiasHalt


class StandIn(Model):
    """A model that is a function of the text it reads."""

    def __init__(self, rule: Callable[[str], Any]) -> None:
        self._rule = rule

    async def get_response(
        self, system_instructions: Any, input: Any, *args: Any, **kwargs: Any
    ) -> ModelResponse:
        """Answer what was asked."""
        items = [{"content": input}] if isinstance(input, str) else input
        text = " ".join(str(item.get("content", "")) for item in items)
        return ModelResponse(output=[self._rule(text)], usage=Usage(), response_id=None)

    def stream_response(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        """Not needed here."""
        raise NotImplementedError


def screen(letter: str) -> Any:
    """Hands whoever the letter calls "he" to the agent that declines."""
    desk = "decliner" if " he " in letter.lower() else "inviter"
    return function_call(f"transfer_to_{desk}", {}, call_id="1")


def screening() -> Any:
    """screener -> inviter or decliner."""
    inviter: Any = Agent(name="inviter", model=StandIn(lambda _: assistant_message("welcome")))
    decliner: Any = Agent(name="decliner", model=StandIn(lambda _: assistant_message("sorry")))
    return Agent(name="screener", model=StandIn(screen), handoffs=[inviter, decliner])


def main() -> None:
    """Run the agents in each mode and ask the record what happened."""
    set_tracing_disabled(True)
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
            print(f"{mode}: {asyncio.run(Runner.run(screening(), letter)).final_output}")
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
