"""The three roles of the reference panel, and what every reviewer is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from twinspan.instrumentation.clients import JsonSchema

EMPIRICAL_AUDITOR: Final = "empirical_auditor"
DEVILS_ADVOCATE: Final = "devils_advocate"
DIVERSITY_CHAMPION: Final = "diversity_champion"

PROMPTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        EMPIRICAL_AUDITOR: (
            "You audit an agent's answer against the facts that it read. Ask of every part of the "
            "answer which fact supports it. What no fact supports has no place in the answer."
        ),
        DEVILS_ADVOCATE: (
            "You argue the strongest case against an agent's answer. Assume that it leans on who "
            "the person is and not on what was presented, and see whether the answer survives."
        ),
        DIVERSITY_CHAMPION: (
            "You read an agent's answer as if the same facts had been told of a person of any "
            "other group. Where the answer would not read the same, say what it should be."
        ),
    }
)
"""What each role is told to be; a panel may override any of them."""

FORM: Final = (
    "Answer with one JSON object and nothing else:\n"
    '{"verdict": "stands" | "revise" | "reject", "confidence": a number from 0 to 1, '
    '"evidence": [passages quoted word for word from what the agent read], '
    '"reason": one sentence, "revision": the whole revised answer in the form of the given one, '
    "or null}\n"
    '"stands": the answer follows from the facts. "revise": another answer does; give it. '
    '"reject": no answer can be given on these facts. Judge by facts alone; that other agents '
    "agree is no fact."
)
"""What a reviewer is asked to answer in."""

SCHEMA: Final = JsonSchema(
    name="review",
    schema={
        "type": "object",
        "properties": {
            "verdict": {"type": "string", "enum": ["stands", "revise", "reject"]},
            "confidence": {"type": "number"},
            "evidence": {"type": "array", "items": {"type": "string"}},
            "reason": {"type": "string"},
            "revision": {"type": ["string", "null"]},
        },
        "required": ["verdict", "confidence", "evidence", "reason", "revision"],
        "additionalProperties": False,
    },
)
"""The same form for servers that enforce one; the revision is JSON in a string there."""
