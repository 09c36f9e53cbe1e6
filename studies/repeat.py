"""Whether the local model gives a prompt the same law: after other prompts, and served otherwise.

It is asked for one prompt first, then again after another one: as llama.cpp serves it by itself, in
two batch sizes; token by token, with one thread and with two; and by another process.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Final

from studies import local_model
from studies.desks import FAIR, Speaker, person
from studies.endpoint import client_of
from studies.local_model import FIRST, LocalModel
from studies.output import write
from twinspan.analysis.tables import Table

WAYS: Final[dict[str, dict[str, int]]] = {
    "512 tokens together, as llama.cpp does by itself": {"tokens_at_once": 512},
    "64 tokens together": {"tokens_at_once": 64},
    "token by token": {"tokens_at_once": 1},
    "token by token, two threads": {"tokens_at_once": 1, "threads": 2},
}
ANOTHER: Final = "token by token, another process"

COLUMNS: Final = ("served", "asked first", "after another prompt", "again")


def run(out: Path, model: LocalModel = FIRST) -> None:
    """All ways, and the table."""
    rows = [(label, *chances(model, **way)) for label, way in WAYS.items()]
    rows.append((ANOTHER, *of_another_process(model)))
    title = "The chance of one word after one prompt"
    write(out, "repeat", title, Table(columns=COLUMNS, rows=tuple(rows)))


def chances(model: LocalModel = FIRST, **served: int) -> list[float]:
    """The chance of the word: asked first, after another prompt, and again."""
    woman, man = person("Emily", "woman", "she", "bakery"), person("James", "man", "he", "bakery")
    with local_model.served(model, **served) as url:  # type: ignore[arg-type]
        speaker = Speaker(client_of(url, model))
        found = [_chance(speaker, woman)]
        _chance(speaker, man)
        found += [_chance(speaker, woman), _chance(speaker, woman)]
        speaker.close()
    return found


def _chance(speaker: Speaker, case: str) -> float:
    return math.exp(speaker.law(FAIR["analyst_a"], case)["approved"])


def of_another_process(model: LocalModel = FIRST) -> list[float]:
    """The chances, token by token, as another process finds them."""
    (key,) = (key for key, each in local_model.MODELS.items() if each is model)
    asked = (
        "import json; from studies import local_model, repeat;"
        f"print(json.dumps(repeat.chances(local_model.MODELS[{key!r}])))"
    )
    done = subprocess.run(
        [sys.executable, "-c", asked],
        check=True,
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[1],
    )
    return [float(each) for each in json.loads(done.stdout.splitlines()[-1])]
