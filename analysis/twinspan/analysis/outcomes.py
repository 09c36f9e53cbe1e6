"""Outcomes: which fact of an agent's actions an audit counts.

A rule is `name = step.field`, the field itself, or `name = step.field <= 2`, a yes or no. Rules
are configuration: they stand in a TOML file or on the command line, and go with the runs.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Final, cast

from twinspan.instrumentation.errors import ConfigurationError

OPERATORS: Final = ("<=", ">=", "!=", "==", "<", ">")

PATTERN: Final = (
    r"^\s*([^=<>!]+?)\s*=\s*([^=<>!]+)\.([^.=<>!]+?)\s*(?:(<=|>=|!=|==|<|>)\s*([^=<>!\s].*?))?\s*$"
)
"""A rule as text: name, step, field, operator and literal; the views read it too."""

_RULE: Final = re.compile(PATTERN)


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeRule:
    """One outcome.

    Attributes:
        name: what the outcome is called.
        step: the node whose action is looked at.
        field: the field of that action.
        operator: one of `OPERATORS`; None for the field itself.
        literal: what the field is compared with.
    """

    name: str
    step: str
    field: str
    operator: str | None = None
    literal: str | None = None

    @classmethod
    def parse(cls, text: str) -> OutcomeRule:
        """Read `name = step.field [operator literal]`.

        Raises:
            ConfigurationError: for a text of another form.

        >>> OutcomeRule.parse("high_acuity = triage.esi_acuity <= 2").text
        'high_acuity=triage.esi_acuity <= 2'
        >>> OutcomeRule.parse("admit=reassess.admit").operator is None
        True
        """
        match = _RULE.match(text)
        if match is None:
            raise ConfigurationError(
                f"{text!r} is no outcome rule; write name=step.field or name=step.field<=2"
            )
        name, step, field, operator, literal = cast("tuple[str, ...]", match.groups())
        return cls(
            name=name,
            step=step.strip(),
            field=field,
            operator=operator or None,
            literal=literal.strip("\"'") if literal else None,
        )

    @property
    def text(self) -> str:
        """The rule as it is recorded with a run."""
        compared = f" {self.operator} {self.literal}" if self.operator else ""
        return f"{self.name}={self.step}.{self.field}{compared}"


def read_rules(path: str | PathLike[str]) -> tuple[OutcomeRule, ...]:
    """The rules of a TOML file, `[outcomes]` with `name = "step.field <= 2"`.

    Raises:
        ConfigurationError: if there is no such file, or no rule in it.
    """
    try:
        document = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigurationError(
            f"outcomes cannot be read from {str(path)!r} ({error}); it is to be a TOML file"
        ) from error
    section = document.get("outcomes")
    if not isinstance(section, dict) or not section:
        raise ConfigurationError(
            f"{str(path)!r} has no table [outcomes]; write [outcomes] and name = 'step.field <= 2'"
        )
    return rules_of(cast("Mapping[str, object]", section))


def rules_of(section: Mapping[str, object]) -> tuple[OutcomeRule, ...]:
    """Rules from names and their right-hand sides.

    >>> [rule.text for rule in rules_of({"admit": "reassess.admit"})]
    ['admit=reassess.admit']
    """
    return unique(OutcomeRule.parse(f"{name}={rule}") for name, rule in section.items())


def unique(rules: Iterable[OutcomeRule]) -> tuple[OutcomeRule, ...]:
    """The rules, once it is sure that no two have one name.

    Raises:
        ConfigurationError: if two do.
    """
    found: dict[str, OutcomeRule] = {}
    for rule in rules:
        if found.setdefault(rule.name, rule) != rule:
            raise ConfigurationError(
                f"two outcomes are named {rule.name!r}; give each a name of its own"
            )
    return tuple(found.values())
