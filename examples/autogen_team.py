"""A team of AutoGen agents under twinspan: a biased agent is found, cut off and repaired.

Run it anywhere: the "model" is a function, so there is nothing to sign up for. Team and agents are
AutoGen's own and know nothing of twinspan.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.conditions import MaxMessageTermination
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_core.models import ChatCompletionClient, CreateResult, ModelInfo, RequestUsage

from twinspan.analysis import open_store
from twinspan.instrumentation import TwinspanInstrumentor
from twinspan.instrumentation.errors import BiasHalt

NO_TOKENS = RequestUsage(prompt_tokens=0, completion_tokens=0)


class StandIn(ChatCompletionClient):
    """A model client that is a function of the text it reads."""

    def __init__(self, rule: Callable[[str], str]) -> None:
        self._rule = rule

    async def create(self, messages: Sequence[Any], **kwargs: Any) -> CreateResult:
        """Answer what was asked."""
        text = " ".join(str(message.content) for message in messages)
        return CreateResult(
            finish_reason="stop", content=self._rule(text), usage=NO_TOKENS, cached=False
        )

    def create_stream(self, *args: Any, **kwargs: Any) -> Any:
        """Not needed here."""
        raise NotImplementedError

    async def close(self) -> None:
        """Nothing is open."""

    def actual_usage(self) -> RequestUsage:
        """Nothing is used."""
        return NO_TOKENS

    def total_usage(self) -> RequestUsage:
        """Nothing is used."""
        return NO_TOKENS

    def count_tokens(self, *args: Any, **kwargs: Any) -> int:
        """Nothing is counted."""
        return 0

    def remaining_tokens(self, *args: Any, **kwargs: Any) -> int:
        """There are always some left."""
        return 1

    @property
    def capabilities(self) -> Any:
        """What it can do."""
        return self.model_info

    @property
    def model_info(self) -> ModelInfo:
        """What it can do."""
        return ModelInfo(
            vision=False,
            function_calling=False,
            json_output=False,
            family="unknown",
            structured_output=False,
        )


def screen(text: str) -> str:
    """Rejects whoever the letter calls "he"."""
    return "reject" if " he " in text.lower() else "invite"


def write(text: str) -> str:
    """Writes to the applicant what was decided."""
    return "sorry" if "reject" in text else "see you on Monday"


def team() -> RoundRobinGroupChat:
    """screener, then writer."""
    return RoundRobinGroupChat(
        [
            AssistantAgent("screener", StandIn(screen)),
            AssistantAgent("writer", StandIn(write)),
        ],
        termination_condition=MaxMessageTermination(3),
    )


def main() -> None:
    """Run the team in each mode and ask the record what happened."""
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
            last: Any = asyncio.run(team().run(task=letter)).messages[-1]
            print(f"{mode}: {last.content}")
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
