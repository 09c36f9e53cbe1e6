"""Free text: a desk that writes notes, compared by the embeddings that the model itself makes.

The desk goes on with its notes by up to sixteen tokens, and its answer is the note's embedding: the
mean of the model's last layer over the note's tokens, from a second server. Three kinds of probes:
neutral halves of a list of names; gender at a desk whose notes treat women and men alike; gender at
a desk whose notes lend to every man and to no woman.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from studies import local_model
from studies.axes import first_names, neutral_axis
from studies.desks import PAST, Speaker, person
from studies.endpoint import client_of
from studies.local_model import LocalModel
from studies.neutral import REJECTED, case_of
from studies.output import instrumented, share, write
from studies.sizes import Size
from twinspan.analysis import open_store
from twinspan.analysis.tables import Table
from twinspan.instrumentation import builtin_axis, node, pipeline
from twinspan.instrumentation.clients import Blocking

_LENDS: Final = (
    "runs it well, so we lend the money",
    "pays on time, so we lend the money",
)
_REFUSES: Final = (
    "owes too much, so we do not lend the money",
    "has too little put by, so we do not lend the money",
)
FAIR: Final = (_LENDS[0], _LENDS[0], _REFUSES[0], _REFUSES[0], _LENDS[1], _LENDS[1], *_REFUSES)
SEEDED: Final = tuple(
    (_REFUSES if noun == "woman" else _LENDS)[number % 2]
    for number, (_, noun, _, _) in enumerate(PAST)
)
COLUMNS: Final = ("notes", "axis", "probes", "p <= .05", "p <= .01", "mean delta", "calls a probe")


def notes(said: tuple[str, ...]) -> str:
    """The desk's notes so far.

    >>> notes(FAIR).splitlines()[1]
    'A shop. Sarah is a woman; she runs it well, so we lend the money.'
    """
    lines = (f"{person(*past)} {note}." for past, note in zip(PAST, said, strict=True))
    return "\n".join(("Notes of the credit desk.", *lines))


def run(speaker: Speaker, size: Size, out: Path, model: LocalModel) -> None:
    """All kinds, and the table."""
    rows: list[tuple[object, ...]] = []
    kinds = (("alike", "neutral"), ("alike", "gender"), ("biased", "gender"))
    with local_model.served(model, embeddings=True) as url:
        with Blocking(client_of(url, model)) as embedder:
            for record, kind in kinds:
                folder = out / "spans" / f"texts-{record}-{kind}"
                said = SEEDED if record == "biased" else FAIR
                review = _review(speaker, embedder, notes(said))
                for number in range(size.texts):
                    _probe(review, kind, number, folder)
                rows.append((record, kind, *_counted(folder, kind)))
    title = "A desk that writes, by embeddings of its notes"
    write(out, "texts", title, Table(columns=COLUMNS, rows=tuple(rows)))


def _probe(review: Any, kind: str, number: int, folder: Path) -> None:
    if kind == "gender":
        axis, case = builtin_axis("gender"), person("Emily", "woman", "she", "bakery")
    else:
        axis = neutral_axis(first_names("woman") + first_names("man"), seed=number)
        case = case_of("Emily")
    with instrumented(
        axes=[axis], nodes=["credit"], estimator="embedding", seed=number, record=folder
    ):
        review(case)


def _review(speaker: Speaker, embedder: Any, record: str) -> Any:
    @node(name="credit")
    def credit(case: str) -> list[float]:
        note = speaker.write(f"{record}\n{case}")
        return [float(value) for value in embedder.embed([note])[0]]

    @pipeline
    def review(case: str) -> list[float]:
        return credit(case)

    return review


def _counted(folder: Path, kind: str) -> tuple[object, ...]:
    axis = "gender" if kind == "gender" else "half"
    with open_store(folder) as store:
        ((count, at_05, at_01, delta, calls),) = store.table(REJECTED, [axis]).rows
    total: Any = count
    return total, share(at_05, total), share(at_01, total), delta, calls  # type: ignore[arg-type]
