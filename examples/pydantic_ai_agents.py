"""Agents of pydantic-ai under twinspan: a biased agent is found, its edge cut and repaired.

Run it anywhere: the "model" is a function, so there is nothing to sign up for. The agents are
pydantic-ai's own; `pipeline` says that the two runs belong together.
"""

from __future__ import annotations

from typing import Any

from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponse, TextPart
from pydantic_ai.models.function import FunctionModel

from twinspan.analysis import open_store
from twinspan.instrumentation import TwinspanInstrumentor, pipeline
from twinspan.instrumentation.errors import BiasHalt


def _words(messages: list[Any]) -> str:
    return " ".join(str(part.content) for message in messages for part in message.parts)


def screen(messages: list[Any], _: Any) -> ModelResponse:
    """Rejects whoever the letter calls "he"."""
    verdict = "reject" if " he " in _words(messages).lower() else "invite"
    return ModelResponse(parts=[TextPart(verdict)])


def write(messages: list[Any], _: Any) -> ModelResponse:
    """Writes to the applicant what was decided."""
    answer = "sorry" if "reject" in _words(messages) else "see you on Monday"
    return ModelResponse(parts=[TextPart(answer)])


screener = Agent(FunctionModel(screen), name="screener")
writer = Agent(FunctionModel(write), name="writer")


@pipeline
def hiring(letter: str) -> str:
    """screener -> writer."""
    advice = screener.run_sync(letter)
    return writer.run_sync(advice.output).output


def main() -> None:
    """Run the agents in each mode and ask the record what happened."""
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
            print(f"{mode}: {hiring(letter)}")
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
