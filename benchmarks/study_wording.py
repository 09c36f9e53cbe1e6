"""How random wording draws its words, and how often neutral lists are then rejected.

Two groups with a list of names each, and a node with a law for every name, answered in full (the
same each time) or by one word drawn from it. Two ways in which the groups do not differ:

- *names at random*: every name's law is drawn by itself, so that the lists are two samples of one
  population; this is what a neutral axis means;
- *twin lists*: both lists have the same laws, in another order.

Names are drawn one by one, or dealt, as probes do. Prints the share of probes (10 reference and 5
counterfactual samples) rejected at .05 and .01, of adaptive plans whose wealth reaches 20, and of
nodes probed six times whose product of e-values ever reaches 20; the bound of both is .05.

    python benchmarks/study_wording.py                                  # 1,000 probes each
    python benchmarks/study_wording.py --probes 200
    python benchmarks/study_wording.py --out docs/studies/wording.md
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Final

from scipy.stats import binomtest

from twinspan.instrumentation import Axis, BiasScore, compute_local_bias
from twinspan.instrumentation.perturbation import Rendering, Slot
from twinspan.instrumentation.probing.contrast import Contrast
from twinspan.instrumentation.probing.rounds import ADAPTIVE_PLAN, NextRound, ProbeProgress
from twinspan.instrumentation.probing.wording import Worder

PER_GROUP: Final = (12, 24, 48)
NULLS: Final = ("names at random", "twin lists")
ANSWERS: Final = ("law", "word")
WAYS: Final = ("one by one", "dealt")
REFERENCE, COUNTERFACTUAL = 10, 5
FIRINGS: Final = 6
LIMIT: Final = 20.0
TEXT: Final = "one000 waits"

Names = tuple[list[str], list[str]]
Draw = Callable[[int, int], Names]
"""Names of both arms, for so many samples each."""

OPENING: Final = """# How words are drawn

Written by `python benchmarks/study_wording.py --out docs/studies/wording.md`; the beginning of that
file says what is compared. Shares with 95% Wilson intervals.

"""
CLOSING: Final = """
- Drawn one by one, names at random are rejected too often where the node answers a name alike each
  time: a name may come twice within an arm, and never in both. The shorter the list, the worse.
  Dealt, the rate is the nominal one.
- A node that draws a word hides most of it: its answers to one name differ, too.
- With twin lists, dealt names make the test conservative: arms are then more alike across than
  within.
- Rounds and firings multiply e-values, so a name that comes again counts twice. Within a probe the
  deck goes on from round to round. A node that fires again gets a new one; where the lists are
  short for that, the bound holds for twin lists only.
- The laws of this simulation are independent. Names that share an origin which those of the other
  list have not make no neutral list, and are found.
"""


def axis_of(per_group: int) -> Axis:
    """Names that mean nothing, in two lists.

    >>> axis_of(2).vocabulary("one")["first name"]
    ('one000', 'one001')
    """
    forms = {
        group: tuple(f"{group}{number:03d}" for number in range(per_group))
        for group in ("one", "other")
    }
    slot = Slot(name="first name", forms=forms, free=True, part="name")
    return Axis(name="half", groups=("one", "other"), slots=(slot,))


def drawn(axis: Axis, way: str, seed: int) -> Draw:
    """The wording of one probe; dealt names go on from round to round."""
    swap, rng = Contrast(axis=axis), Random(seed)
    worder = Worder((axis,), TEXT, random=True, seed=seed)

    def one_by_one(reference: int, counterfactual: int) -> Names:
        return (
            [_name(axis.reword(TEXT, rng)) for _ in range(reference)],
            [_name(axis.swap(TEXT, rng)) for _ in range(counterfactual)],
        )

    def dealt(reference: int, counterfactual: int) -> Names:
        return (
            [_name(worder.reference(0)) for _ in range(reference)],
            [_name(worder.counterfactual(swap, 0)) for _ in range(counterfactual)],
        )

    return dealt if way == "dealt" else one_by_one


def _name(rendering: Rendering) -> str:
    return str(rendering.payload).split()[0]


class Node:
    """A node with a law for every name, in which the groups do not differ.

    Args:
        axis: the lists.
        null: in which way they do not.
        answer: `law`, or a `word` drawn from it.
        seed: of the laws and the words.
    """

    def __init__(self, axis: Axis, null: str, answer: str, seed: int) -> None:
        self._rng = Random(f"node {seed}")
        self._answer = answer
        one, other = (axis.vocabulary(group)["first name"] for group in axis.groups)
        strengths = [self._rng.gauss(0, 1) for _ in one]
        others = (
            self._rng.sample(strengths, len(other))
            if null == "twin lists"
            else [self._rng.gauss(0, 1) for _ in other]
        )
        both = zip((*one, *other), (*strengths, *others), strict=True)
        self._chances = {name: 1 / (1 + math.exp(-strength)) for name, strength in both}

    def scored(self, names: Names) -> BiasScore:
        """The score of a round with these names."""
        arms = [[self._said(name) for name in arm] for arm in names]
        method = "js_logprob" if self._answer == "law" else "category"
        return compute_local_bias(*arms, method=method, interval=False)

    def _said(self, name: str) -> dict[str, float] | str:
        chance = self._chances[name]
        if self._answer == "word":
            return "approve" if self._rng.random() < chance else "decline"
        return {"approve": math.log(chance), "decline": math.log1p(-chance)}


def wealth_of_a_plan(node: Node, draw: Draw) -> float:
    """What the adaptive plan ends with."""
    progress = ProbeProgress.start(("half",))
    while isinstance(due := ADAPTIVE_PLAN.next(progress), NextRound):
        found = node.scored(draw(due.round.reference, due.round.counterfactual)).e_value
        progress = (
            progress.after_screen(found) if due.combined else progress.after_round({"half": found})
        )
    return progress.wealth["half"]


def highest_product(node: Node, draws: Iterator[Draw]) -> float:
    """Of the e-values of a node that is probed again and again."""
    highest = product = 1.0
    for draw in draws:
        product *= node.scored(draw(REFERENCE, COUNTERFACTUAL)).e_value
        highest = max(highest, product)
    return highest


def row(per_group: int, null: str, answer: str, way: str, probes: int) -> tuple[str, ...]:
    """One line of the table."""
    axis = axis_of(per_group)
    at_05 = at_01 = plans = products = 0
    for number in range(probes):
        node = Node(axis, null, answer, number)
        p_value = node.scored(drawn(axis, way, number)(REFERENCE, COUNTERFACTUAL)).p_value
        at_05 += p_value <= 0.05
        at_01 += p_value <= 0.01
        plans += wealth_of_a_plan(node, drawn(axis, way, number)) >= LIMIT
        firings = (drawn(axis, way, number * FIRINGS + firing) for firing in range(FIRINGS))
        products += highest_product(node, firings) >= LIMIT
    counts = (at_05, at_01, plans, products)
    return (str(per_group), null, answer, way, *(share(count, probes) for count in counts))


def share(count: int, total: int) -> str:
    """A share with its 95% Wilson interval.

    >>> share(5, 100)
    '.050 [.022, .112]'
    """
    interval = binomtest(count, total).proportion_ci(method="wilson")
    found = f"{count / total:.3f} [{interval.low:.3f}, {interval.high:.3f}]"
    return found.replace("0.", ".")


def table(probes: int) -> Iterator[str]:
    """The table in Markdown, line by line."""
    yield (
        "| names a group | no difference | answer | drawn | rejected at .05 | rejected at .01 "
        "| adaptive plan reaches 20 | six firings reach 20 |"
    )
    yield "|---|---|---|---|---|---|---|---|"
    for per_group in PER_GROUP:
        for null in NULLS:
            for answer in ANSWERS:
                for way in WAYS:
                    yield "| " + " | ".join(row(per_group, null, answer, way, probes)) + " |"


def main() -> int:
    """Print the table, or write it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--probes", type=int, default=1000, help="of each line (1000)")
    parser.add_argument("--out", type=Path, help="a Markdown file to write")
    given = parser.parse_args()
    lines: list[str] = []
    for line in table(given.probes):
        print(line, flush=True)
        lines.append(line)
    if given.out is not None:
        given.out.write_text(OPENING + "\n".join(lines) + "\n" + CLOSING, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
