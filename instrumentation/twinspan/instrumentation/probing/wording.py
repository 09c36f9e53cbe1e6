"""Says a payload again for every arm: all axes in words of their own, one of them swapped."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

from twinspan.instrumentation.perturbation import Axis, Edit, Reading, Rendering, WordDeck
from twinspan.instrumentation.probing.contrast import Contrast
from twinspan.instrumentation.probing.plan import derive_seed

_Say = Callable[[Axis, Reading, Any, Random | None], Rendering]


class Worder:
    """Renders one payload for the samples of a probe, in the order in which they are asked for.

    With random wording every sample says its words on every axis anew, also on those that are
    not swapped, so that reference samples serve all axes alike. The words are dealt: no two
    samples of a probe, whichever their arms and rounds, share a word before the list is used up;
    see :class:`~twinspan.instrumentation.perturbation.WordDeck`. Dealt independently of the arms,
    they leave the arms exchangeable where the axis does not matter.

    Args:
        axes: the axes of the probe, in order.
        payload: what the node read.
        random: deal wording; otherwise words stay, and swaps use fixed counterparts.
        seed: of the decks.
    """

    def __init__(
        self, axes: tuple[Axis, ...], payload: Any, *, random: bool, seed: int = 0
    ) -> None:
        self._axes = axes
        self._payload = payload
        self._random = random
        self._first = axes[0].read(payload)
        self._decks = {
            axis.name: WordDeck(derive_seed(seed, "words", axis.name)) for axis in axes if random
        }

    def reference(self, seed: int) -> Rendering:
        """A sample in the payload's own groups."""
        return self._say(seed, main=self._axes[0], say=self._reworded)

    def counterfactual(self, contrast: Contrast, seed: int) -> Rendering:
        """A sample that differs in what the contrast says; a `no_op` where it cannot."""

        def say(axis: Axis, reading: Reading, payload: Any, rng: Random | None) -> Rendering:
            return contrast.counterfactual(reading, payload, rng, self._deck(axis))

        return self._say(seed, main=contrast.axis, say=say)

    def moves(self, contrast: Contrast) -> bool:
        """Whether the contrast changes anything in the payload; takes no word from a deck."""
        reading = self._read(contrast.axis, self._payload)
        rng = Random(0) if self._random else None
        return not contrast.counterfactual(reading, self._payload, rng).no_op

    def screen(self, seed: int) -> Rendering:
        """A sample in which every axis is swapped at once."""
        rng = Random(seed) if self._random else None
        payload = self._payload
        edits: tuple[Edit, ...] = ()
        said: Rendering | None = None
        for axis in self._axes:
            said = self._read(axis, payload).swap(rng, deck=self._deck(axis))
            payload, edits = said.payload, (*edits, *said.edits)
        assert said is not None
        return replace(said, payload=payload, edits=edits, axis="screen", perturbation_id="screen")

    def _say(self, seed: int, *, main: Axis, say: _Say) -> Rendering:
        rng = Random(seed) if self._random else None
        payload = self._payload
        edits: tuple[Edit, ...] = ()
        told: Rendering | None = None
        for axis in self._axes:
            how = say if axis is main else self._reworded
            said = how(axis, self._read(axis, payload), payload, rng)
            payload, edits = said.payload, (*edits, *said.edits)
            if axis is main:
                told = said
        assert told is not None
        if told.no_op and say != self._reworded:
            return told
        return replace(told, payload=payload, edits=edits)

    def _reworded(
        self, axis: Axis, reading: Reading, payload: Any, rng: Random | None
    ) -> Rendering:
        return reading.reword(rng, deck=self._deck(axis))

    def _deck(self, axis: Axis) -> WordDeck | None:
        return self._decks.get(axis.name)

    def _read(self, axis: Axis, payload: Any) -> Reading:
        if axis is self._axes[0] and payload is self._payload:
            return self._first
        return axis.read(payload)
