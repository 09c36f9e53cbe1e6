"""Outcomes are configuration: a rule says what of an action is counted."""

from __future__ import annotations

from pathlib import Path

import pytest
from recorded_runs import ScoredRun, recording

from twinspan.analysis.outcomes import OutcomeRule, read_rules, unique
from twinspan.analysis.store import open_store
from twinspan.instrumentation import conventions as c
from twinspan.instrumentation.errors import ConfigurationError

A = c.ACTION_PREFIX


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("a=s.f", ("a", "s", "f", None, None)),
        ("a = s.f<=2", ("a", "s", "f", "<=", "2")),
        (" a=team/s one.f >= 2.5 ", ("a", "team/s one", "f", ">=", "2.5")),
        ("a=x.y.f == 'yes'", ("a", "x.y", "f", "==", "yes")),
        ("a=s.f!=no", ("a", "s", "f", "!=", "no")),
        ("a=s.f<-1", ("a", "s", "f", "<", "-1")),
    ],
)
def test_a_rule_is_read_and_written_the_same(text: str, parts: tuple[str | None, ...]) -> None:
    """Name, step, field, operator and literal; the canonical text reads back to the same."""
    rule = OutcomeRule.parse(text)
    assert (rule.name, rule.step, rule.field, rule.operator, rule.literal) == parts
    assert OutcomeRule.parse(rule.text) == rule


@pytest.mark.parametrize("text", ["", "a", "a=b", "=s.f", "a=s.f<=", "a=s.f=2", "a<=s.f"])
def test_what_is_no_rule_is_refused(text: str) -> None:
    """The message shows how to write one."""
    with pytest.raises(ConfigurationError, match=r"write name=step\.field"):
        OutcomeRule.parse(text)


def test_two_rules_of_one_name_are_refused() -> None:
    """A name stands for one outcome; saying it twice the same way is fine."""
    rule = OutcomeRule.parse("a=s.f")
    assert unique([rule, rule]) == (rule,)
    with pytest.raises(ConfigurationError, match="two outcomes are named 'a'"):
        unique([rule, OutcomeRule.parse("a=s.g")])


def test_rules_stand_in_a_toml_file(tmp_path: Path) -> None:
    """A table [outcomes]; anything else is refused with the cure."""
    path = tmp_path / "o.toml"
    path.write_text('[outcomes]\nurgent = "triage.level <= 2"\nadmit = "out.admit"\n')
    assert [rule.text for rule in read_rules(path)] == [
        "urgent=triage.level <= 2",
        "admit=out.admit",
    ]
    for content in ("", "[other]\na = 1", "not toml at all ["):
        path.write_text(content)
        with pytest.raises(ConfigurationError, match=r"outcomes"):
            read_rules(path)
    with pytest.raises(ConfigurationError):
        read_rules(tmp_path / "none.toml")


def _actions(folder: Path, *rules: str) -> dict[str, object]:
    with open_store(folder, outcomes=[OutcomeRule.parse(rule) for rule in rules]) as store:
        return {
            str(action): value
            for action, value in store.table("SELECT action, value FROM actions").rows
        }


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One run whose steps acted in every type; it carries no rules."""
    path = tmp_path_factory.mktemp("spans")
    with recording(path) as (telemetry, _):
        run = ScoredRun(telemetry, "r1", root={c.CASE_ID: "c1"})
        run.node("triage", 1, {f"{A}level": 2, f"{A}score": 0.5, f"{A}word": "yes"})
        run.node("out", 2, {f"{A}admit": True, f"{A}orders": ["a", "b"]})
        run.end()
    return path


def test_without_rules_every_scalar_field_is_an_outcome(folder: Path) -> None:
    """Named by step and field; lists are no scalars."""
    assert _actions(folder) == {
        "triage.level": "2",
        "triage.score": "0.5",
        "triage.word": "yes",
        "out.admit": "true",
    }


def test_a_rule_of_a_field_that_nobody_acted_on_has_no_row(folder: Path) -> None:
    """What is missing is no outcome at all."""
    assert _actions(folder, "x=out.none <= 2", "y=none.level") == {}


@pytest.mark.parametrize(
    ("rule", "value"),
    [
        ("x=triage.level <= 2", "true"),
        ("x=triage.level < 2", "false"),
        ("x=triage.level >= 2.0", "true"),
        ("x=triage.level > 10", "false"),
        ("x=triage.level == 2.0", "true"),
        ("x=triage.level != 2", "false"),
        ("x=triage.word == yes", "true"),
        ("x=triage.word != no", "true"),
        ("x=triage.word <= 2", None),
        ("x=out.admit == true", "true"),
        ("x=out.admit", "true"),
        ("x=out.orders", '["a","b"]'),
    ],
)
def test_a_rule_is_true_or_false_or_has_no_value(
    folder: Path, rule: str, value: str | None
) -> None:
    """Numbers compare as numbers, words by equality, and nothing else compares."""
    assert _actions(folder, rule) == {"x": value}


def test_rules_that_runs_carry_are_in_force_until_others_are_given(tmp_path: Path) -> None:
    """The recorded rules of a run, or the ones that come with the question."""
    with recording(tmp_path) as (telemetry, _):
        run = ScoredRun(telemetry, "r1", root={c.AUDIT_OUTCOMES: ["urgent=triage.level <= 2"]})
        run.node("triage", 1, {f"{A}level": 1, f"{A}other": 3})
        run.end()
    assert _actions(tmp_path) == {"urgent": "true"}
    assert _actions(tmp_path, "late=triage.level>2") == {"late": "false"}


def test_the_last_execution_of_a_step_counts_and_failed_ones_do_not(tmp_path: Path) -> None:
    """A loop acts once in the end; a retried attempt never did."""
    with recording(tmp_path) as (telemetry, _):
        run = ScoredRun(telemetry, "r1")
        for superstep, level in enumerate((1, 2, 3)):
            run.node("loop", superstep, {f"{A}level": level})
        run.node("loop", 9, {f"{A}level": 4, c.NODE_OUTCOME: "retried"})
        run.end()
    assert _actions(tmp_path) == {"loop.level": "3"}
