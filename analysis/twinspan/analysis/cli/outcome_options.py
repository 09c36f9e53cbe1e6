"""The options that name outcomes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from twinspan.analysis.outcomes import OutcomeRule, read_rules, unique

_Command = TypeVar("_Command", bound=Callable[..., Any])


def outcome_options(command: _Command) -> _Command:
    """The options `--outcomes FILE` and `--outcome RULE`."""
    for option in (
        click.option(
            "--outcome",
            "rules",
            multiple=True,
            metavar="RULE",
            help='One outcome, like "urgent=triage.level<=2"; may be repeated.',
        ),
        click.option(
            "--outcomes",
            "rules_file",
            type=click.Path(),
            metavar="FILE",
            help="A TOML file with a table [outcomes] of such rules.",
        ),
    ):
        command = option(command)
    return command


def given_rules(rules_file: str | None, rules: Sequence[str]) -> tuple[OutcomeRule, ...]:
    """The rules that a command line names, of the file first."""
    from_file = read_rules(rules_file) if rules_file else ()
    return unique([*from_file, *(OutcomeRule.parse(rule) for rule in rules)])
