"""An agent that stops for a person and goes on, maybe in another process; also a program.

python tests/resumable.py SPANS THREADS begin|answer|continue|whole|crash [MODE]
"""

from __future__ import annotations

import os
import signal
import sqlite3
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypedDict

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt

from twinspan.instrumentation import TwinspanInstrumentor

TEXT = "Emily Brown applied. She runs a shop, and her accounts are in order."
THREAD: Any = {"configurable": {"thread_id": "case 7"}}


class State(TypedDict, total=False):
    """What the agents share."""

    text: str
    plan: str
    a: str
    approval: str
    letter: str
    filed: str


def leans(text: str, word: str, share: int) -> str:
    """Declines some of the texts that have the word: always the same ones."""
    is_hit = word in text.lower().split() and sum(map(ord, text)) % share == 0
    return "decline" if is_hit else "approve"


class Agent:
    """planner -> (analyst, ask) -> writer -> filer; `ask` waits for a person.

    Attributes:
        crash: the process is killed while the writer works.
        share: the analyst declines one in so many women.
    """

    def __init__(self, threads: str, *, crash: bool = False, share: int = 2) -> None:
        self.crash, self.share = crash, share
        graph: Any = StateGraph(State)
        graph.add_node("planner", lambda s: {"plan": leans(s["text"], "she", 5)})
        graph.add_node("analyst", lambda s: {"a": leans(s["text"], "she", self.share)})
        graph.add_node("ask", lambda s: {"approval": interrupt("go on?")})
        graph.add_node("writer", self._write)
        graph.add_node("filer", lambda s: {"filed": s["letter"]})
        graph.add_edge(START, "planner")
        graph.add_edge("planner", "analyst")
        graph.add_edge("planner", "ask")
        graph.add_edge(["analyst", "ask"], "writer")
        graph.add_edge("writer", "filer")
        graph.add_edge("filer", END)
        connection = sqlite3.connect(threads, check_same_thread=False)
        self.compiled = graph.compile(name="review", checkpointer=SqliteSaver(connection))

    def _write(self, state: Any) -> State:
        if self.crash:
            time.sleep(0.5)  # what has ended is on disk by then
            os.kill(os.getpid(), signal.SIGKILL)
        return {"letter": leans(state["text"], "she", 3)}

    def begin(self) -> Any:
        """Run until the person is asked."""
        return self.compiled.invoke({"text": TEXT}, THREAD)

    def answer(self) -> Any:
        """The person's answer, and the rest of the run."""
        return self.compiled.invoke(Command(resume="yes"), THREAD)

    def go_on(self) -> Any:
        """Execute again what did not end."""
        return self.compiled.invoke(None, THREAD)


@contextmanager
def recorded(spans: Path, **options: Any) -> Generator[None]:
    """The installed collector, recording."""
    instrumentor = TwinspanInstrumentor()
    used = {"axes": ["gender"], "nodes": ["planner", "analyst", "writer"], "mode": "shadow"}
    instrumentor.instrument(**{**used, "record": spans, "flush_seconds": 0.05, **options})
    try:
        yield
    finally:
        instrumentor.uninstrument()


def main(spans: str, threads: str, stage: str, mode: str = "shadow") -> None:
    """One stage of a run."""
    agent = Agent(threads, crash=stage == "crash")
    with recorded(Path(spans), mode=mode):
        if stage in ("begin", "whole"):
            agent.begin()
        if stage in ("answer", "whole", "crash"):
            agent.answer()
        if stage == "continue":
            agent.go_on()


if __name__ == "__main__":
    main(*sys.argv[1:])
