"""Which fields of an action are recorded, and in what form.

An audit exists to count actions, so yes and no, numbers and choices of a schema are recorded,
and whatever field an outcome is made of. Free text is the words of an answer: it is recorded
only where the audit says so, or the content switch is on; a list tells its length.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from twinspan.instrumentation.audit.schemas import Schema
from twinspan.instrumentation.hashing import canonical


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionFilter:
    """What of actions goes into the record.

    Attributes:
        outcomes: step and field of every outcome.
        texts: whether free text does.

    >>> keep = ActionFilter(outcomes=frozenset({("decide", "verdict")}))
    >>> keep.fields("decide", {"verdict": "approve", "why": "She pays.", "risk": 0.2, "of": ["a"]})
    {'verdict': 'approve', 'risk': 0.2, 'of.count': 1}
    """

    outcomes: frozenset[tuple[str, str]] = frozenset()
    texts: bool = False

    def fields(
        self, step: str, action: Mapping[str, object], schema: Schema | None = None
    ) -> dict[str, object]:
        """The fields of an action that are recorded; nested ones under dotted names."""
        properties = cast("Mapping[str, Mapping[str, Any]]", (schema or {}).get("properties", {}))
        kept: dict[str, object] = {}
        for name, value in _flat(action):
            wanted = self.texts or (step, name) in self.outcomes
            if wanted or _is_plain(value) or "enum" in properties.get(name, {}):
                kept[name] = value
            elif isinstance(value, list):
                kept[f"{name}.count"] = len(cast("list[object]", value))
        return kept


def _is_plain(value: object) -> bool:
    return isinstance(value, bool | int | float)


def _flat(action: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, object]]:
    for name, value in action.items():
        if isinstance(value, Mapping) and value:
            yield from _flat(cast("Mapping[str, object]", value), f"{prefix}{name}.")
        elif value is not None:
            yield (
                f"{prefix}{name}",
                _plain_list(cast("list[object]", value)) if isinstance(value, list) else value,
            )


def _plain_list(values: list[object]) -> object:
    """A list as it is if it can be an attribute, else as JSON text."""
    return (
        values
        if all(isinstance(value, str) or _is_plain(value) for value in values)
        else canonical(values)
    )
