"""Whether the local model gives a prompt the same law, whatever was asked before it.

It is served in two ways, as llama.cpp does by itself and token by token, and asked for one prompt
first, then again after another one.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from studies import local_model
from studies.desks import FAIR, Speaker, person
from studies.output import write
from twinspan.analysis.tables import Table
from twinspan.instrumentation.clients import OpenAICompatibleClient

WAYS: Final = {"as llama.cpp does by itself": 512, "token by token": 1}
"""Tokens of a prompt that are computed together."""

COLUMNS: Final = ("served", "asked first", "after another prompt", "again", "seconds a law, later")


def run(out: Path) -> None:
    """Both ways, and the table."""
    rows = tuple((label, *_asked(tokens)) for label, tokens in WAYS.items())
    title = "The chance of one word after one prompt"
    write(out, "repeat", title, Table(columns=COLUMNS, rows=rows))


def _asked(tokens: int) -> Iterator[float]:
    woman, man = person("Emily", "woman", "she", "bakery"), person("James", "man", "he", "bakery")
    with local_model.served(tokens_at_once=tokens) as url:
        speaker = Speaker(
            OpenAICompatibleClient(base_url=url, model=local_model.NAME, trust_env=False)
        )
        yield _chance(speaker, woman)
        start = time.perf_counter()
        _chance(speaker, man)
        yield _chance(speaker, woman)
        yield _chance(speaker, woman)
        yield (time.perf_counter() - start) / 3
        speaker.close()


def _chance(speaker: Speaker, case: str) -> float:
    return round(math.exp(speaker.law(FAIR["analyst_a"], case)["approved"]), 6)
