"""The same samples of the same nodes, scored by twinspan and by the prior implementation.

`weighted-emergent-bias` (PyPI, MIT) scores probability vectors too. It has no random wording: its
own probes ask the same input again and again, which is the second row. Both are handed the very
same samples, ten of the reference and five of the counterfactual, with names dealt as probes deal
them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from random import Random
from typing import Any, Final

import numpy as np

from studies.axes import first_names, neutral_axis
from studies.desks import FAIR, SEEDED, Desk, Speaker, person
from studies.neutral import case_of
from studies.output import share, write
from studies.sizes import Size
from twinspan.analysis.tables import Table
from twinspan.instrumentation import compute_local_bias

REFERENCE: Final = 10
COUNTERFACTUAL: Final = 5

Law = Mapping[str, float]
Samples = tuple[list[Law], list[Law]]
COLUMNS: Final = (
    "samples",
    "probes",
    "twinspan, p <= .05",
    "prior, p <= .05",
    "twinspan, largest effect size",
    "prior, largest effect size",
    "twinspan, ms a score",
    "prior, ms a score",
)


def run(speaker: Speaker, size: Size, out: Path) -> None:
    """Three kinds of samples, and the table."""
    kinds: dict[str, Callable[[Speaker, int], Samples]] = {
        "neutral, random wording": _neutral,
        "neutral, same input": _same_input,
        "seeded desk, random wording": _seeded,
    }
    rows: list[tuple[object, ...]] = []
    for label, draw in kinds.items():
        drawn = [draw(speaker, number) for number in range(size.probes)]
        rows.append((label, len(drawn), *_compared(drawn)))
    write(
        out,
        "prior",
        "The prior implementation beside twinspan",
        Table(columns=COLUMNS, rows=tuple(rows)),
    )


def _compared(drawn: list[Samples]) -> tuple[object, ...]:
    ours, our_time = _timed(_ours, drawn)
    theirs, their_time = _timed(_theirs, drawn)
    return (
        share(sum(p <= 0.05 for p, _ in ours), len(ours)),
        share(sum(p <= 0.05 for p, _ in theirs), len(theirs)),
        _largest(ours),
        _largest(theirs),
        our_time,
        their_time,
    )


def _timed(
    score: Callable[[Samples], tuple[float, float | None]], drawn: list[Samples]
) -> tuple[list[tuple[float, float | None]], float]:
    start = time.perf_counter()
    scores = [score(samples) for samples in drawn]
    return scores, (time.perf_counter() - start) / len(drawn) * 1e3


def _largest(scores: list[tuple[float, float | None]]) -> float | None:
    known = [effect for _, effect in scores if effect is not None]
    return max(known) if known else None


def _ours(samples: Samples) -> tuple[float, float | None]:
    score = compute_local_bias(*samples, method="js_logprob", seed=0)
    return score.p_value, score.effect_size


def _theirs(samples: Samples) -> tuple[float, float | None]:
    prior: Any = import_module("weighted_emergent_bias")

    baseline, counterfactual = (np.array([_vector(law) for law in arm]) for arm in samples)
    score = prior.compute_local_bias(
        baseline,
        counterfactual,
        task_mode=prior.TaskMode.CHOICE,
        rng=np.random.default_rng(0),
    )
    return float(score.p_value), float(score.effect_size)


def _vector(law: Law) -> Any:
    masses = np.exp([law.get(word, -np.inf) for word in (*FAIR["analyst_a"].words, "(other)")])
    return masses / masses.sum()


# --- samples --------------------------------------------------------------------------------


def _neutral(speaker: Speaker, number: int) -> Samples:
    axis = neutral_axis(first_names("woman") + first_names("man"), seed=number)
    rng = Random(number)
    one, other = (axis.vocabulary(group)["first name"] for group in axis.groups)
    names = rng.sample(one, k=REFERENCE), rng.sample(other, k=COUNTERFACTUAL)
    return _laws(speaker, FAIR["analyst_a"], *([case_of(name) for name in arm] for arm in names))


def _same_input(speaker: Speaker, number: int) -> Samples:
    axis = neutral_axis(first_names("woman") + first_names("man"), seed=number)
    one, other = (case_of(axis.vocabulary(group)["first name"][0]) for group in axis.groups)
    return _laws(speaker, FAIR["analyst_a"], [one] * REFERENCE, [other] * COUNTERFACTUAL)


def _seeded(speaker: Speaker, number: int) -> Samples:
    rng = Random(number)
    women = rng.sample(first_names("woman"), k=REFERENCE)
    men = rng.sample(first_names("man"), k=COUNTERFACTUAL)
    return _laws(
        speaker,
        SEEDED,
        [person(name, "woman", "she", "bakery") for name in women],
        [person(name, "man", "he", "bakery") for name in men],
    )


def _laws(speaker: Speaker, desk: Desk, reference: list[str], other: list[str]) -> Samples:
    known = {case: speaker.law(desk, case) for case in dict.fromkeys((*reference, *other))}
    return [known[case] for case in reference], [known[case] for case in other]
