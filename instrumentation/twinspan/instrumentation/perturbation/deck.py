"""Deals the words of free slots, so that no word stands in for chance."""

from __future__ import annotations

from collections.abc import Container
from random import Random

from twinspan.instrumentation.perturbation.vocabulary import Slot


class WordDeck:
    """Deals words of one axis: none comes again before all of its list have come.

    A node that answers the same name always the same way brings no new evidence when a name comes
    again. Drawn independently, a name may come twice within an arm and, where each group has a
    list of its own, never in both arms, so that an arm looks more alike within than across. Dealt
    from one deck, the samples of a probe have names of their own as long as the list lasts. Which
    name came to which arm is then chance alone, and the test is exact for names that are
    themselves a sample: names that do not differ by group may differ from one another as they
    like.

    Args:
        seed: of the order of every list; a list's order does not depend on other lists.

    >>> slot = Slot(name="first name", forms={"woman": ("Ann", "Bea", "Cleo")}, free=True)
    >>> deck = WordDeck(seed=1)
    >>> dealt = [deck.deal(slot, "woman") for _ in range(6)]
    >>> sorted(dealt[:3]), sorted(dealt[3:])
    ([0, 1, 2], [0, 1, 2])
    """

    __slots__ = ("_left", "_orders", "_seed")

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._orders: dict[tuple[Slot, str], Random] = {}
        self._left: dict[tuple[Slot, str], list[int]] = {}

    def deal(self, slot: Slot, group: str, taken: Container[int] = ()) -> int:
        """Index of the next word in a group's list.

        Args:
            slot: the slot.
            group: whose list.
            taken: words that are in the sample already; one of them comes only if there is no
                other in the list.
        """
        key = (slot, group)
        left = self._left.setdefault(key, [])
        place = _first_free(left, taken)
        if place is None:
            left += self._shuffled(key)
            place = _first_free(left, taken)
        return left.pop(0 if place is None else place)

    def _shuffled(self, key: tuple[Slot, str]) -> list[int]:
        slot, group = key
        order = self._orders.setdefault(key, Random(f"{self._seed}/{slot.name}/{group}"))
        indices = list(range(len(slot.forms[group])))
        order.shuffle(indices)
        return indices


def _first_free(left: list[int], taken: Container[int]) -> int | None:
    return next((place for place, index in enumerate(left) if index not in taken), None)
