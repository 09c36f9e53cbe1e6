"""What the two arms of a probe set are to differ in."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any, Final, Literal, get_args

from twinspan.instrumentation.perturbation import (
    Axis,
    Reading,
    Rendering,
    WordDeck,
    neutral_edit,
    rare_token,
    sham,
)

Control = Literal["sham", "rare_token", "neutral_edit"]
"""Contrasts that leave the attribute alone: what they shift is not bias on the axis."""

ContrastKind = Literal["attribute_swap", "proxy_swap", "sham", "rare_token", "neutral_edit"]

SCREEN: Final = "screen"
"""The contrast in which all axes are swapped at once: cheap, and blind to effects that cancel."""

CONTROLS: Final[tuple[Control, ...]] = get_args(Control)

_MAKERS: Final = {"sham": sham, "rare_token": rare_token}


@dataclass(frozen=True, slots=True, kw_only=True)
class Contrast:
    """One axis in one respect: its words, its proxies, or a control in their place.

    Attributes:
        axis: the axis.
        kind: what the counterfactual arm changes.
    """

    axis: Axis
    kind: ContrastKind = "attribute_swap"

    @property
    def label(self) -> str:
        """The name under which scores are kept apart, such as `gender` or `gender#sham`."""
        if self.kind == "attribute_swap":
            return self.axis.name
        return f"{self.axis.name}#{self.kind.removesuffix('_swap')}"

    @property
    def is_control(self) -> bool:
        """Whether the contrast leaves the attribute alone."""
        return self.kind in CONTROLS

    def counterfactual(
        self, reading: Reading, payload: Any, rng: Random | None, deck: WordDeck | None = None
    ) -> Rendering:
        """A sample of the counterfactual arm."""
        if self.kind == "attribute_swap" or self.kind == "proxy_swap":
            return reading.swap(rng, kind=self.kind, deck=deck)
        if self.kind == "neutral_edit":
            return neutral_edit(payload, self.axis, rng, deck=deck)
        return _MAKERS[self.kind](payload, self.axis, rng, deck=deck)


def contrasts_of(axes: tuple[Axis, ...], controls: tuple[Control, ...]) -> tuple[Contrast, ...]:
    """Every contrast of some axes: swaps first, then the controls.

    >>> from twinspan.instrumentation.perturbation import builtin_axis
    >>> [c.label for c in contrasts_of((builtin_axis("gender"),), ("sham",))]
    ['gender', 'gender#sham']
    """
    swaps = [Contrast(axis=axis, kind=kind) for axis in axes for kind in axis.kinds]
    return (*swaps, *(Contrast(axis=axis, kind=kind) for axis in axes for kind in controls))
