"""`python -m studies`: each study by its name, on the local model or on the one you name."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, cast

import click

from studies import breaker, effects, floors, lists, neutral, prior, repeat
from studies.desks import Speaker
from studies.endpoint import is_local, model_client
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


@click.command()
@click.argument("study", type=click.Choice([*STUDIES, "effects", "repeat", "all"]))
@click.option("--size", type=click.Choice(list(SIZES)), default="small", show_default=True)
@click.option("--seed", type=int, default=0, show_default=True, help="Root of all seeds.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("study-out"),
    show_default=True,
    help="Folder of the spans and tables.",
)
@click.option(
    "--data",
    type=click.Path(path_type=Path),
    help="Folder with winogender/ and bbq/, for the study of effects; `all` skips it without.",
)
def main(study: str, size: str, seed: int, out: Path, data: Path | None) -> None:
    """Run a STUDY on a real language model.

    The model is the server that OPENAI_BASE_URL names (with OPENAI_API_KEY and TWINSPAN_MODEL;
    it must serve /completions), else the small local one of `make real-model`. Spans go below
    OUT/spans, tables into OUT as CSV and Markdown. Run it into an empty folder.
    """
    if (out / "spans").exists():
        raise click.UsageError(
            f"{str(out)!r} holds an earlier study; name another folder with --out"
        )
    if study == "effects" and data is None:
        raise click.UsageError("the study of effects needs --data; see studies/templates.py")
    chosen = list(STUDIES) if study == "all" else [study] if study in STUDIES else []
    try:
        if study == "repeat":
            return repeat.run(out)
        with model_client(seed=seed) as client:
            speaker = Speaker(client, remember=is_local())
            for name in chosen:
                _timed(name, STUDIES[name], speaker, SIZES[cast(SizeName, size)], out)
            if data is not None and study in ("effects", "all"):
                _timed("effects", _effects(data), speaker, SIZES[cast(SizeName, size)], out)
            speaker.close()
    except TwinspanError as error:
        raise click.ClickException(str(error)) from error


def _effects(data: Path) -> Study:
    return lambda speaker, size, out: effects.run(speaker, size, out, data)


def _timed(name: str, study: Study, speaker: Speaker, size: Size, out: Path) -> None:
    start = time.perf_counter()
    before = speaker.calls
    study(speaker, size, out)
    seconds = time.perf_counter() - start
    print(f"{name}: {seconds:.0f} s, {speaker.calls - before} laws asked for", flush=True)


if __name__ == "__main__":
    main()
