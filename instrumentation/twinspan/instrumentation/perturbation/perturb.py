"""The one-call form: every twin of a payload along the given axes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from random import Random

from twinspan.instrumentation.errors import ConfigurationError
from twinspan.instrumentation.perturbation.axis import Axis
from twinspan.instrumentation.perturbation.loading import builtin_axis
from twinspan.instrumentation.perturbation.rendering import Rendering


def perturb(
    payload: object,
    axes: Iterable[Axis | str] | Axis | str,
    *,
    rng: Random | None = None,
    to: Mapping[str, str] | None = None,
) -> list[Rendering]:
    """Make the counterfactual twins of a payload, one per axis and kind of word.

    There is no default axis: which attribute matters, and in which words, is the caller's to
    say.

    Args:
        payload: any payload; it is not changed.
        axes: axes, or names of axes that come with the package; at least one.
        rng: draws names and other free words; ``None`` takes their fixed counterparts.
        to: target group by axis name, where it is not the one declared after the source.

    Returns:
        In the order of the axes, and for each axis the swap of the words that name the
        attribute before the swap of those that hint at it. A twin in which nothing could be
        swapped is among them, as a ``no_op``.

    Raises:
        ConfigurationError: no axis was given, or two of one name, or ``to`` names a group or
            an axis that there is not.
        UnknownAxis: a name belongs to no axis that comes with the package.
        PerturbationError: the payload contains itself or is nested too deep.

    >>> from twinspan.instrumentation.perturbation.axis import Substitution
    >>> axis = Axis.from_substitutions("gender", [
    ...     Substitution("him", "her"), Substitution("90210", "10453", "proxy_swap")])
    >>> [twin.payload for twin in perturb("call him at 90210", [axis])]
    ['call her at 90210', 'call him at 10453']
    """
    chosen = _axes(axes)
    targets = dict(to or {})
    if unknown := set(targets) - {axis.name for axis in chosen}:
        raise ConfigurationError(f"'to' names {min(unknown)!r}, which is none of the axes given")
    twins: list[Rendering] = []
    for axis in chosen:
        reading = axis.read(payload)
        twins += (reading.swap(rng, to=targets.get(axis.name), kind=kind) for kind in axis.kinds)
    return twins


def _axes(axes: Iterable[Axis | str] | Axis | str) -> list[Axis]:
    given = [axes] if isinstance(axes, Axis | str) else list(axes)
    if not given:
        raise ConfigurationError("no axes were given; name at least one, such as 'gender'")
    chosen = [builtin_axis(axis) if isinstance(axis, str) else axis for axis in given]
    names = [axis.name for axis in chosen]
    if twice := {name for name in names if names.count(name) > 1}:
        raise ConfigurationError(f"axis {min(twice)!r} was given twice; give each axis once")
    return chosen
