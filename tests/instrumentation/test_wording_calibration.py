"""Names are dealt: a node that answers a name alike each time is not flagged for it.

The null is a population of names: the groups' lists are two samples of it, and the node may answer
each name as it likes. Whether a name comes twice within an arm then decides whether the arms can be
exchanged, and so whether the test is exact.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from random import Random

import pytest

from twinspan.instrumentation import Axis, LOOCProbe, compute_local_bias
from twinspan.instrumentation.perturbation import Slot, WordDeck
from twinspan.instrumentation.probing.contrast import Contrast
from twinspan.instrumentation.probing.wording import Worder
from twinspan.instrumentation.settings import ProbeOptions

PER_GROUP = 24
REFERENCE, COUNTERFACTUAL = 10, 5
TEXT = "halfone00 waits"


def axis_of(per_group: int = PER_GROUP, name: str = "half") -> Axis:
    """Names that mean nothing, in two lists."""
    forms = {
        group: tuple(f"{name}{group}{number:02d}" for number in range(per_group))
        for group in ("one", "other")
    }
    slot = Slot(name="first name", forms=forms, free=True, part="name")
    return Axis(name=name, groups=("one", "other"), slots=(slot,))


def asked(axis: Axis, text: str, **given: object) -> list[str]:
    """What a probe's node reads."""
    read: list[str] = []
    options = ProbeOptions(
        axes=(axis,),
        reference=REFERENCE,
        counterfactual=COUNTERFACTUAL,
        concurrency=1,
        **given,  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    )

    def node(payload: str) -> str:
        read.append(payload)
        return "yes"

    LOOCProbe(node, options=options).run(text)
    return read


# --- what is dealt ----------------------------------------------------------------------------


def test_no_two_samples_of_a_probe_share_a_name() -> None:
    """Not within an arm, and not of the controls either, which stay in the payload's group."""
    read = asked(axis_of(40), "halfone00 met nobody.", controls=("sham", "neutral_edit"))
    assert len(read) == REFERENCE + 3 * COUNTERFACTUAL
    names = [next(word for word in text.split() if word.startswith("half")) for text in read]
    assert len(set(names)) == len(names)


def test_no_two_samples_share_any_of_several_names() -> None:
    read = asked(axis_of(), "halfone00 met halfone01.")
    names = [name.strip(".") for text in read for name in text.split() if name.startswith("half")]
    assert len(names) == 2 * (REFERENCE + COUNTERFACTUAL) == len(set(names))


def test_rounds_of_a_probe_share_no_name_either() -> None:
    """Evidence of rounds is multiplied: a name that comes again would count twice."""
    axis = axis_of(60)
    worder = Worder((axis,), TEXT, random=True, seed=3)
    swap = Contrast(axis=axis)
    rounds = [worder.screen(seed).payload for seed in range(3)]
    rounds += [worder.reference(seed).payload for seed in range(20)]
    rounds += [worder.counterfactual(swap, seed).payload for seed in range(20)]
    assert len(set(rounds)) == 43


def test_a_list_that_is_used_up_begins_anew_and_evenly() -> None:
    axis = axis_of(7)
    deck = WordDeck(seed=5)
    dealt = [deck.deal(axis.slots[0], "one") for _ in range(17)]
    assert set(Counter(dealt[:14]).values()) == {2}
    assert len(set(dealt[14:])) == 3


def test_a_sample_has_no_name_twice_where_the_deck_is_shuffled_anew() -> None:
    """Two people of one payload stay two as long as there are two names."""
    read = asked(axis_of(3), "halfone00 met halfone01.")
    pairs = [{word.strip(".") for word in text.split() if word.startswith("half")} for text in read]
    assert all(len(pair) == 2 for pair in pairs)


def test_the_same_seed_deals_the_same_names_and_another_one_others() -> None:
    axis = axis_of()
    assert asked(axis, TEXT, seed=1) == asked(axis, TEXT, seed=1) != asked(axis, TEXT, seed=2)


def test_every_name_is_dealt_to_every_place_alike() -> None:
    """Counts of 4,000 deals of a list of four; chi-square with 9 degrees of freedom."""
    slot = axis_of(4).slots[0]
    places: Counter[tuple[int, int]] = Counter()
    for seed in range(1000):
        deck = WordDeck(seed=seed)
        places.update((place, deck.deal(slot, "one")) for place in range(4))
    assert len(places) == 16
    assert sum((count - 250) ** 2 / 250 for count in places.values()) < 27.9


# --- the error rate that follows -----------------------------------------------------------------


def law(strength: float) -> dict[str, float]:
    chance = 1 / (1 + math.exp(-strength))
    return {"approve": math.log(chance), "decline": math.log1p(-chance)}


Draw = Callable[[int, int], tuple[list[str], list[str]]]


def rejected(draw: Draw, *, per_group: int, probes: int = 600) -> int:
    """Neutral probes of a node with a law for each name that reach p <= .05."""
    found = 0
    for number in range(probes):
        rng = Random(number)
        names = [f"half{group}{at:02d}" for group in ("one", "other") for at in range(per_group)]
        laws = {name: law(rng.gauss(0, 1)) for name in names}
        reference, counterfactual = draw(per_group, number)
        score = compute_local_bias(
            [laws[name] for name in reference],
            [laws[name] for name in counterfactual],
            method="js_logprob",
            interval=False,
        )
        found += score.p_value <= 0.05
    return found


def dealt(per_group: int, number: int) -> tuple[list[str], list[str]]:
    """As a probe words its samples."""
    axis = axis_of(per_group)
    worder, swap = Worder((axis,), TEXT, random=True, seed=number), Contrast(axis=axis)
    return (
        [worder.reference(seed).payload.split()[0] for seed in range(REFERENCE)],
        [worder.counterfactual(swap, seed).payload.split()[0] for seed in range(COUNTERFACTUAL)],
    )


def independent(per_group: int, number: int) -> tuple[list[str], list[str]]:
    """Every sample by itself."""
    axis, rng = axis_of(per_group), Random(-1 - number)
    return (
        [axis.reword(TEXT, rng).payload.split()[0] for _ in range(REFERENCE)],
        [axis.swap(TEXT, rng).payload.split()[0] for _ in range(COUNTERFACTUAL)],
    )


# 600 probes at .05: 30 rejections are expected, with a standard deviation of 5.3.


@pytest.mark.parametrize("per_group", [12, PER_GROUP])
def test_dealt_names_are_rejected_at_the_nominal_rate(per_group: int) -> None:
    assert rejected(dealt, per_group=per_group) <= 30 + 2 * 5.3


def test_names_drawn_independently_are_rejected_too_often() -> None:
    """Why they are dealt: of short lists three times too many."""
    assert rejected(independent, per_group=12) >= 60
