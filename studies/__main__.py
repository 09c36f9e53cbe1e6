"""`python -m studies`: each study by its name, on the local model or on the one you name."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, cast

import click

from studies import breaker, compare, effects, floors, lists, neutral, prior, repeat, texts
from studies.desks import Speaker
from studies.endpoint import is_local, model_client
from studies.local_model import MODELS, LocalModel
from studies.sizes import SIZES, Size, SizeName
from twinspan.instrumentation.errors import TwinspanError

Study = Callable[[Speaker, Size, Path], None]

STUDIES: Final[dict[str, Study]] = {
    "neutral": neutral.run,
    "lists": lists.run,
    "breaker": breaker.run,
    "seeded": breaker.run_seeded,
    "prior": prior.run,
    "floors": lambda speaker, size, out: floors.run(speaker.client, size, out),
}
"""Those that need no further data, in the order in which `all` runs them."""

LOCAL_ONLY: Final = ("repeat", "texts")
"""Those about how the local model is served, or of its own embeddings; `all` runs them too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What the command line says."""

    study: str
    size: Size
    seed: int
    out: Path
    data: Path | None
    model: LocalModel

    def wants(self, name: str) -> bool:
        """Whether a study is to be run."""
        return self.study in (name, "all")


@click.command()
@click.argument("study", type=click.Choice([*STUDIES, *LOCAL_ONLY, "effects", "all", "compare"]))
@click.option("--size", type=click.Choice(list(SIZES)), default="small", show_default=True)
@click.option("--seed", type=int, default=0, show_default=True, help="Root of all seeds.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("study-out"),
    show_default=True,
    help="Folder of the spans, tables and pictures.",
)
@click.option(
    "--data",
    type=click.Path(path_type=Path),
    help="Folder with winogender/ and bbq/, for the study of effects; `all` skips it without.",
)
@click.option(
    "--model",
    type=click.Choice(list(MODELS)),
    default="smollm2",
    show_default=True,
    help="Which local model; mind the terms of gemma3, which come with its package.",
)
def main(study: str, size: str, seed: int, out: Path, data: Path | None, model: str) -> None:
    """Run a STUDY on a real language model.

    The model is the server that OPENAI_BASE_URL names (with OPENAI_API_KEY and TWINSPAN_MODEL;
    it must serve /completions), else a small local one of `make real-model`. Spans go below
    OUT/spans, tables and pictures into OUT. Run it into an empty folder.

    `compare` runs nothing: it sets the tables in OUT beside those that come with the studies, and
    beside what is asked of them; it ends with 1 if something differs beyond its uncertainty.
    """
    if study == "compare":
        raise SystemExit(0 if compare.run(out) else 1)
    if (out / "spans").exists():
        raise click.UsageError(
            f"{str(out)!r} holds an earlier study; name another folder with --out"
        )
    if study == "effects" and data is None:
        raise click.UsageError("the study of effects needs --data; see studies/templates.py")
    given = Given(
        study=study,
        size=SIZES[cast(SizeName, size)],
        seed=seed,
        out=out,
        data=data,
        model=MODELS[model],
    )
    try:
        _run(given)
    except TwinspanError as error:
        raise click.ClickException(str(error)) from error


def _run(given: Given) -> None:
    if given.wants("repeat") and is_local():
        _timed("repeat", lambda: repeat.run(given.out, given.model))
    if given.study == "repeat":
        return
    with model_client(seed=given.seed, local=given.model) as client:
        speaker = Speaker(client, remember=is_local())
        for name, study in _chosen(given).items():
            speaker.start_over()
            _timed(name, lambda study=study: study(speaker, given.size, given.out))  # type: ignore[misc]
        speaker.close()


def _chosen(given: Given) -> dict[str, Study]:
    chosen = {name: study for name, study in STUDIES.items() if given.wants(name)}
    if given.wants("texts") and is_local():
        chosen["texts"] = lambda speaker, size, out: texts.run(speaker, size, out, given.model)
    data = given.data
    if data is not None and given.wants("effects"):
        chosen["effects"] = lambda speaker, size, out: effects.run(speaker, size, out, data)
    return chosen


def _timed(name: str, study: Callable[[], None]) -> None:
    start = time.perf_counter()
    study()
    print(f"{name}: {time.perf_counter() - start:.0f} s", flush=True)


if __name__ == "__main__":
    main()
