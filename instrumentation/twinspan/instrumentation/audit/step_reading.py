"""Steps as a configuration writes them, in short or as JSON schemas."""

from __future__ import annotations

import re
from typing import Any, Final, cast

from twinspan.instrumentation.audit.config_section import Section
from twinspan.instrumentation.audit.steps import CLINICAL_STEPS, Step
from twinspan.instrumentation.errors import ConfigurationError

_SHORT: Final = re.compile(
    r"^(boolean|integer|number|string|texts)(?:\s+(-?\d+(?:\.\d+)?)\s*\.\.\s*(-?\d+(?:\.\d+)?))?$"
)
PRESETS: Final = {"clinical": CLINICAL_STEPS}


def read_steps(section: Section) -> tuple[Step, ...]:
    """The steps of a configuration: ``steps = "clinical"``, or a table ``[[step]]`` for each.

    Raises:
        ConfigurationError: a step cannot be read.
    """
    if isinstance(section.raw("steps"), str):
        name = section.choice("steps", list(PRESETS), "")
        return PRESETS[name]
    if "steps" in section:
        raise section.error("steps is no name; write [[step]] for each step", "steps")
    return tuple(map(_step, section.sections("step")))


def _step(section: Section) -> Step:
    name, instruction = section.text("name"), section.text("instruction", "")
    with section.at():
        schema = _schema(section)
        step = Step(name=name, schema=schema, instruction=instruction)
    section.close()
    return step


def _schema(section: Section) -> dict[str, Any] | None:
    if "schema" in section and "fields" in section:
        raise section.error("a step has both fields and a schema; keep one", "fields")
    if "schema" in section:
        return section.mapping("schema")
    fields = section.mapping("fields")
    if not fields:
        return None
    properties = {name: short_schema(name, told) for name, told in fields.items()}
    # An optional field would be a missing cell, so every one is required.
    return {"type": "object", "properties": properties, "required": list(properties)}


def short_schema(name: str, told: object) -> dict[str, Any]:
    """A field's schema from its short form.

    Raises:
        ConfigurationError: it is none.

    >>> short_schema("level", "integer 1..5")
    {'type': 'integer', 'minimum': 1, 'maximum': 5}
    >>> short_schema("verdict", ["approve", "decline"])
    {'enum': ['approve', 'decline']}
    """
    if isinstance(told, list) and told:
        return {"enum": told}
    if isinstance(told, dict):
        return cast("dict[str, Any]", told)
    match = _SHORT.match(told.strip()) if isinstance(told, str) else None
    if match is None:
        raise ConfigurationError(
            f"field {name!r} is {told!r}; write boolean, integer, integer 1..5, number, string, "
            "texts, or a list of choices"
        )
    kind, low, high = match.groups()
    if kind == "texts":
        return {"type": "array", "items": {"type": "string"}}
    ends = {} if low is None else {"minimum": _number(low), "maximum": _number(high)}
    return {"type": kind, **ends}


def _number(text: str) -> int | float:
    return float(text) if "." in text else int(text)
