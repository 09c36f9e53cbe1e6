"""Steps and the schemas of their answers."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twinspan.instrumentation.audit import (
    CLINICAL_STEPS,
    Step,
    check_answer,
    check_forced,
    check_schema,
    violations,
)
from twinspan.instrumentation.errors import ConfigurationError

STEPS = {step.name: step for step in CLINICAL_STEPS}

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.sampled_from([-1.5, 0.0, 2.0]),
    st.sampled_from("ab"),
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from("xyz"), inner, max_size=3)
    ),
    max_leaves=6,
)
types = st.sampled_from(["object", "array", "string", "integer", "number", "boolean", "null"])
leaves = st.fixed_dictionaries(
    {},
    optional={
        "type": st.one_of(types, st.lists(types, min_size=1, max_size=2, unique=True)),
        "enum": st.lists(scalars, min_size=1, max_size=3),
        "minimum": st.integers(-2, 2),
        "maximum": st.integers(-2, 2),
    },
)
schemas = st.recursive(
    leaves,
    lambda inner: st.fixed_dictionaries(
        {},
        optional={
            "type": st.sampled_from(["object", "array"]),
            "properties": st.dictionaries(st.sampled_from("xyz"), inner, max_size=3),
            "required": st.lists(st.sampled_from("xyz"), max_size=2, unique=True),
            "additionalProperties": st.booleans(),
            "items": inner,
        },
    ),
    max_leaves=5,
)


@settings(max_examples=150, deadline=None)
@given(values, schemas)
def test_an_answer_fits_exactly_if_a_full_validator_says_so(
    answer: Any, schema: dict[str, Any]
) -> None:
    check_schema(schema)
    expected = jsonschema.Draft202012Validator(schema).is_valid(answer)
    assert (violations(answer, schema) == ()) is expected


@pytest.mark.parametrize(
    "wrong",
    [
        {"pattern": "a"},
        {"type": "float"},
        {"properties": {"a": {"oneOf": []}}},
        {"items": {"minItems": 1}},
        {"additionalProperties": {"type": "string"}},
    ],
)
def test_a_schema_that_would_be_half_obeyed_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        check_schema(wrong)
    with pytest.raises(ConfigurationError):
        Step(name="s", schema=wrong)


@pytest.mark.parametrize(
    ("answer", "pointer", "keyword"),
    [
        ({"esi_acuity": 9, "urgency_score": 50}, "/esi_acuity", "maximum"),
        ({"esi_acuity": 0, "urgency_score": 50}, "/esi_acuity", "minimum"),
        ({"esi_acuity": True, "urgency_score": 50}, "/esi_acuity", "type"),
        ({"esi_acuity": 2}, "", "required"),
        ([2], "", "type"),
    ],
)
def test_a_wrong_answer_is_told_by_place_and_keyword(
    answer: object, pointer: str, keyword: str
) -> None:
    found = check_answer(STEPS["triage"], answer)
    assert (found.valid, found.action) == (False, None)
    assert [(each.pointer, each.keyword) for each in found.violations] == [(pointer, keyword)]


def test_numbers_that_are_no_numbers_do_not_fit() -> None:
    schema = {"type": "number"}
    assert violations(float("nan"), schema) and violations(float("inf"), schema)


def test_whole_numbers_become_integers_and_further_fields_stay() -> None:
    found = check_answer(STEPS["triage"], {"esi_acuity": 2.0, "urgency_score": 50, "why": "pain"})
    assert found.action == {"esi_acuity": 2, "urgency_score": 50, "why": "pain"}


def test_the_loop_has_six_steps_of_which_five_ask_a_model_and_require_every_field() -> None:
    assert list(STEPS) == ["triage", "order", "results", "reassess", "prescribe", "document"]
    asking = [step for step in CLINICAL_STEPS if step.schema is not None]
    assert len(asking) == 5
    for step in asking:
        assert step.schema is not None
        assert step.schema["required"] == list(step.schema["properties"])


def test_a_step_of_the_environment_is_not_answered() -> None:
    with pytest.raises(ConfigurationError, match="environment"):
        check_answer(STEPS["results"], {})


def test_vector_62_a_forced_step_is_accepted_where_another_shows_the_descriptor() -> None:
    check_forced(CLINICAL_STEPS, {"triage": {"esi_acuity": 2, "urgency_score": 50}})


@pytest.mark.parametrize(
    ("forced", "shown", "message"),
    [
        ({"triage": {"esi_acuity": 2, "urgency_score": 5}}, ["triage"], "shows the descriptor"),
        ({"results": {}}, None, "no step that asks"),
        ({"triag": {}}, None, "no step that asks"),
        ({}, ["results"], "no step that asks"),
        ({"triage": {"esi_acuity": 9, "urgency_score": 5}}, None, "9 is above 5"),
        ({"triage": {"esi_acuity": 2}}, None, "missing"),
    ],
)
def test_forcing_that_makes_no_experiment_is_refused(
    forced: dict[str, object], shown: list[str] | None, message: str
) -> None:
    with pytest.raises(ConfigurationError, match=message):
        check_forced(CLINICAL_STEPS, forced, shown)


def test_a_descriptor_that_is_shown_nowhere_can_be_forced_everywhere() -> None:
    check_forced(CLINICAL_STEPS, {"order": {"orders": []}}, [])


def test_a_step_needs_a_name() -> None:
    with pytest.raises(ConfigurationError):
        Step(name=" ")
