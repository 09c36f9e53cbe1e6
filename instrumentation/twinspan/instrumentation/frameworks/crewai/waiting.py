"""An agent at work: what it streams and remembers waits for the decision about its answer."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from twinspan.instrumentation.engine import Engine
from twinspan.instrumentation.frameworks.crewai.memory import Saves, remembering
from twinspan.instrumentation.frameworks.crewai.session import at_work, heeding_halts
from twinspan.instrumentation.frameworks.crewai.streams import Held, holding
from twinspan.instrumentation.safety import harmless


@dataclass(frozen=True, slots=True)
class Waiting:
    """What one execution of an agent leaves behind, besides its answer."""

    engine: Engine
    held: Held
    saves: Saves

    def settle(self, replacement: str | None) -> None:
        """The answer is decided.

        Args:
            replacement: the text of the answer that replaces it; None if it stands.
        """
        with harmless(self.engine.failures, "streaming an answer"):
            if replacement is None:
                self.held.pass_on()
            else:
                self.held.replace(replacement)
        # What CrewAI raises here is the application's: a hook of its own may forbid to remember.
        if replacement is None:
            self.saves.pass_on()
        else:
            self.saves.replace(replacement)


@contextmanager
def working(agent: Any, engine: Engine) -> Generator[Waiting]:
    """An agent works in the block; a halt within it leaves it, whatever CrewAI makes of it."""
    with (
        at_work(agent),
        heeding_halts(),
        holding(holds=engine.holds_stream) as held,
        remembering(waits=engine.enforces) as saves,
    ):
        yield Waiting(engine, held, saves)
