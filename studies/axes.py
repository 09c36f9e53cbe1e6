"""Axes of the studies: the built-in ones, and neutral ones that mean nothing."""

from __future__ import annotations

from random import Random
from typing import Final

from twinspan.instrumentation import Axis, builtin_axis
from twinspan.instrumentation.perturbation.vocabulary import Slot

NEUTRAL: Final = "half"
"""The name of a neutral axis."""


def first_names(group: str) -> tuple[str, ...]:
    """The first names that the built-in gender axis lists for a group."""
    return builtin_axis("gender").vocabulary(group)["first name"]


def neutral_axis(names: tuple[str, ...], seed: int) -> Axis:
    """An axis between two halves of one list of names, cut at random.

    Whichever way the list is cut, neither half says anything that the other does not, so that a
    node that is found to treat them differently is a false alarm.

    >>> axis = neutral_axis(("Ann", "Bea", "Cleo", "Dora"), seed=1)
    >>> axis.groups, sorted(sum(axis.vocabulary("one").values(), ())) != ["Ann", "Bea"]
    (('one', 'other'), True)
    """
    shuffled = list(names)
    Random(seed).shuffle(shuffled)
    middle = len(shuffled) // 2
    halves = {"one": tuple(shuffled[:middle]), "other": tuple(shuffled[middle:])}
    slot = Slot(name="first name", forms=halves, free=True, part="name")
    return Axis(name=NEUTRAL, groups=("one", "other"), slots=(slot,))
