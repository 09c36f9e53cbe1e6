"""A pipeline of plain functions under twinspan: observed, probed, and stopped where biased.

Run it anywhere: the "model" is a function, so there is nothing to sign up for. Two decorators say
what is an agent and what is a run; the rest is your code as it was.
"""

from __future__ import annotations

from twinspan.analysis import open_store
from twinspan.instrumentation import TwinspanInstrumentor, node, pipeline
from twinspan.instrumentation.errors import BiasHalt


@node
def screen(letter: str) -> str:
    """A screener that marks down whoever the letter calls "he"."""
    return "reject" if "he" in letter.lower().split() else "invite"


@node
def invite(screening: str) -> str:
    """Writes the invitation, or none."""
    return "see you on Monday" if screening == "invite" else "no invitation"


@pipeline
def hiring(letter: str) -> str:
    """screen -> invite."""
    return invite(screen(letter))


def main() -> None:
    """Run the pipeline in each mode and ask the record what happened."""
    letter = "Daniel Reed applies as a baker. He has worked in two bakeries."
    for mode in ("shadow", "halt", "repair"):
        instrumentor = TwinspanInstrumentor()
        instrumentor.instrument(
            axes=["gender"], nodes=["screen"], mode=mode, record=f"spans-{mode}"
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
