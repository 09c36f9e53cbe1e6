"""Counterfactual twins: a payload said again with one demographic attribute changed.

An :class:`Axis` knows the words of two or more groups. It finds them in any payload, says
which group the payload speaks of, says it again in another group's words
(:meth:`Axis.swap`), in other words of its own (:meth:`Axis.reword`), or in words of no group
(:meth:`Axis.neutral`). The controls edit what does not matter. Everything made is a
:class:`Rendering`, which knows each of its edits.

No axis is a default. Those that come with the package (:func:`builtin_axis`) are
illustrations.
"""

from twinspan.instrumentation.perturbation.axis import Axis, Substitution
from twinspan.instrumentation.perturbation.controls import (
    neutral_edit,
    rare_token,
    rerender,
    sham,
)
from twinspan.instrumentation.perturbation.deck import WordDeck
from twinspan.instrumentation.perturbation.descriptors import Descriptor, DescriptorTemplate
from twinspan.instrumentation.perturbation.loading import (
    BUILTIN_AXES,
    builtin_axis,
    load_axes,
    parse_axes,
)
from twinspan.instrumentation.perturbation.perturb import perturb
from twinspan.instrumentation.perturbation.reading import Reading
from twinspan.instrumentation.perturbation.rendering import (
    Edit,
    PerturbationKind,
    Rendering,
    SwapKind,
    replay,
)
from twinspan.instrumentation.perturbation.tree import text_leaves
from twinspan.instrumentation.perturbation.vocabulary import Slot

__all__ = [
    "BUILTIN_AXES",
    "Axis",
    "Descriptor",
    "DescriptorTemplate",
    "Edit",
    "PerturbationKind",
    "Reading",
    "Rendering",
    "Slot",
    "Substitution",
    "SwapKind",
    "WordDeck",
    "builtin_axis",
    "load_axes",
    "neutral_edit",
    "parse_axes",
    "perturb",
    "rare_token",
    "replay",
    "rerender",
    "sham",
    "text_leaves",
]
