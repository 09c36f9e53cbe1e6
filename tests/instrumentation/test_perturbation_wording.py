"""Wording drawn at random in every arm, so that the axis is the only systematic difference."""

from __future__ import annotations

from collections import Counter
from hashlib import blake2b
from itertools import combinations
from random import Random

import numpy as np
import pytest

from twinspan.instrumentation.perturbation import Axis, Slot, builtin_axis

GENDER = builtin_axis("gender")
TEXT = "Emily told Rachel that EMILY and Rachel's sister met James."


def people(text: str) -> list[str]:
    words = text.replace("'s", "").strip(".").split()
    return [words[i] for i in (0, 2, 4, 6, 9)]


@pytest.mark.parametrize("seed", range(20))
def test_one_name_gets_one_name_and_two_names_get_two(seed: int) -> None:
    """Throughout the payload, in the case the name came in."""
    for twin in (GENDER.reword(TEXT, Random(seed)), GENDER.swap(TEXT, Random(seed), to="man")):
        first, second, again, also, other = people(twin.payload)
        assert again == first.upper()
        assert also == second
        assert len({first, second, other}) == 3


def test_rewording_stays_in_the_group() -> None:
    """Names of women become names of women, and nothing else changes."""
    women, men = (set(GENDER.vocabulary(group)["first name"]) for group in ("woman", "man"))
    for seed in range(50):
        twin = GENDER.reword(TEXT, Random(seed))
        first, second, _, _, other = people(twin.payload)
        assert {first, second} <= women
        assert other in men
        assert (twin.kind, twin.source, twin.target) == ("identity", "woman", "woman")
        assert twin.perturbation_id == "gender:woman"
        assert "'s sister met" in twin.payload


def test_swapping_draws_from_the_other_group() -> None:
    """In both directions at once."""
    women, men = (set(GENDER.vocabulary(group)["first name"]) for group in ("woman", "man"))
    for seed in range(50):
        first, second, _, _, other = people(GENDER.swap(TEXT, Random(seed), to="man").payload)
        assert {first, second} <= men
        assert other in women


def test_without_a_generator_nothing_is_drawn() -> None:
    """In "same input" mode rewording is the identity, and the twin is always the same."""
    twin = GENDER.reword(TEXT)
    assert twin.payload is TEXT
    assert twin.no_op
    assert GENDER.swap(TEXT) == GENDER.swap(TEXT)
    assert GENDER.swap("Emily").payload == "James"
    assert GENDER.swap("Emily and Rachel").payload == "James and Andrew"


def test_a_seed_decides_the_wording() -> None:
    """The same one gives the same twin, another one mostly another."""
    twins = [GENDER.swap(TEXT, Random(seed)).payload for seed in (1, 1, 2, 3, 4)]
    assert twins[0] == twins[1]
    assert len(set(twins)) == 4


def test_a_reading_renders_as_the_axis_does() -> None:
    """It is only read once."""
    reading = GENDER.read(TEXT)
    assert reading.swap(Random(7)) == GENDER.swap(TEXT, Random(7))
    assert reading.reword(Random(7)) == GENDER.reword(TEXT, Random(7))
    assert reading.neutral() == GENDER.neutral(TEXT)
    assert reading.counts() == {"woman": 5, "man": 1}


def test_every_word_of_the_list_is_drawn_alike() -> None:
    """Uniform over the group's list: chi-squared with 23 degrees of freedom, at one in 10,000."""
    rng = Random(20260101)
    drawn = Counter(GENDER.reword("Emily", rng).payload for _ in range(4800))
    expected = 4800 / 24
    assert set(drawn) == set(GENDER.vocabulary("woman")["first name"])
    assert sum((count - expected) ** 2 / expected for count in drawn.values()) < 57.1


def test_a_name_that_is_drawn_again_is_no_edit() -> None:
    """An edit that changes nothing would be counted as one."""
    twins = [SMALL.reword("Ann", Random(seed)) for seed in range(30)]
    assert {twin.no_op for twin in twins} == {True, False}
    assert all(twin.no_op == (twin.payload == "Ann") for twin in twins)


SMALL = Axis(
    name="small",
    groups=("a", "b"),
    slots=(Slot(name="n", free=True, forms={"a": ("Ann", "Amy", "Ada"), "b": ("Bob", "Ben")}),),
)


def test_a_list_that_is_too_short_is_used_again() -> None:
    """Two of three people then share a name; no error, no name of another group."""
    for rng in (None, Random(1), Random(2)):
        words = SMALL.swap("Ann Amy Ada", rng).payload.split()
        assert set(words) == {"Bob", "Ben"}


def test_fixed_counterparts_stay_apart_where_the_list_allows() -> None:
    """Word three of three meets word one of two, unless that is taken."""
    assert SMALL.swap("Ada Ann").payload == "Bob Ben"
    assert SMALL.swap("Ann Ada").payload == "Bob Ben"


def test_words_of_the_other_kind_are_reworded_too() -> None:
    """A ZIP code says as little by its digits in the counterfactual arm as in the reference."""
    axis = builtin_axis("race_ethnicity")
    drawn = {
        axis.swap("Emily Olson of 04103", Random(seed), to="black").payload.split()[-1]
        for seed in range(40)
    }
    assert drawn == set(axis.vocabulary("white")["ZIP code"])


def answer(salt: int, text: str) -> float:
    """A node that reacts to wording as such and knows nothing of gender."""
    return int.from_bytes(blake2b(f"{salt}{text}".encode(), digest_size=6).digest()) / 2**48


def p_value(reference: list[float], counterfactual: list[float]) -> float:
    """Exact two-sided permutation test of the difference of means."""
    pooled = np.array(reference + counterfactual)
    n = len(counterfactual)
    picks = np.array(list(combinations(range(len(pooled)), n)))
    shift = np.abs(pooled[picks].mean(axis=1) - pooled.mean())
    return float(np.mean(shift >= abs(np.mean(counterfactual) - pooled.mean()) - 1e-12))


def rejections(*, drawn: bool, nodes: int = 400, n: int = 5) -> float:
    """Share of unbiased, edit-sensitive nodes that a test at 0.05 calls biased."""
    reading = GENDER.read("Emily and Rachel asked whether her claim and the other were late.")
    rng = Random(11)
    noise = Random(12)
    found = 0
    for salt in range(nodes):
        arms: list[list[float]] = []
        for move in (reading.reword, reading.swap):
            twins = [move(rng if drawn else None) for _ in range(n)]
            arms.append([answer(salt, twin.payload) + noise.gauss(0, 0.1) for twin in twins])
        found += p_value(*arms) <= 0.05
    return found / nodes


def test_a_node_that_reacts_to_any_edit_is_not_called_biased_under_random_wording() -> None:
    """The null holds: at most 0.05, here within three standard errors of 400 nodes."""
    assert rejections(drawn=True) <= 0.05 + 3 * (0.05 * 0.95 / 400) ** 0.5


def test_the_same_node_is_called_biased_when_the_wording_is_fixed() -> None:
    """Which is why a fixed wording can only say "reacts to the edit"."""
    assert rejections(drawn=False, nodes=100) > 0.5
