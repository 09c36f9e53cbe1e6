"""What passes the gate is what a reader of the file gets back."""

from __future__ import annotations

import enum
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.sdk.trace import TracerProvider

from twinspan.instrumentation import conventions as c
from twinspan.instrumentation.attributes import (
    CONTENT_LIMIT,
    LABEL_LIMIT,
    Absent,
    clean_attributes,
    clean_value,
)


class Colour(enum.Enum):
    """An enum with a value of its own type."""

    RED = "red"


@pytest.mark.parametrize(
    ("value", "cleaned"),
    [
        (np.int64(3), 3),
        (np.float32(0.5), 0.5),
        (np.bool_(True), True),
        (np.str_("x"), "x"),
        (np.array(7), 7),
        (np.array([1.5, 2.0]), (1.5, 2.0)),
        (Colour.RED, "red"),
        ((1, 2), (1, 2)),
        ({"b", "a"}, ("a", "b")),
        ([1, "a"], ("1", "a")),
        ([True, 2], ("True", "2")),
        (2**63 - 1, 2**63 - 1),
        ("plain", "plain"),
    ],
)
def test_values_become_plain(value: object, cleaned: object) -> None:
    """Numpy, enums and mixed arrays arrive as what they mean."""
    result = clean_value(value)
    assert result == cleaned
    assert type(result) is type(cleaned)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (float("nan"), "nan"),
        (float("inf"), "infinite"),
        (-math.inf, "infinite"),
        (np.float64("nan"), "nan"),
        (2**63, "integer_over_64_bit"),
        (-(2**63) - 1, "integer_over_64_bit"),
        (None, "none"),
        (b"bytes", "unsupported_type:bytes"),
        ({"a": 1}, "unsupported_type:dict"),
        (object(), "unsupported_type:object"),
        ([1.0, float("nan")], "array_element_nan"),
    ],
)
def test_what_has_no_faithful_form_is_absent_with_a_reason(value: object, reason: str) -> None:
    """No data is not zero, and not the text "nan" either."""
    assert clean_value(value) == Absent(reason)


def test_a_whole_number_keeps_the_type_of_its_key() -> None:
    """A threshold of 1 is 1.0 in the file, and must be so in whatever is hashed before."""
    cleaned = clean_attributes({c.BREAKER_THRESHOLD_ENTER: 1, c.NETWORK_STEP: 1})
    assert [type(value) for value in cleaned.values()] == [float, int]


def test_none_is_left_out_silently_and_nan_is_named() -> None:
    """Not known is not the same as not a number."""
    cleaned = clean_attributes({c.EFFECT_VALUE: math.nan, c.EFFECT_P_VALUE: None})
    assert cleaned == {c.UNDEFINED: (f"{c.EFFECT_VALUE}=nan",)}


def test_long_text_is_cut_and_said_to_be() -> None:
    """A 5 MB string passes the SDK and kills a batch; content may be longer than a label."""
    cleaned = clean_attributes({c.NODE_ID: "x" * 5_000_000, c.GEN_AI_INPUT_MESSAGES: "y" * 5000})
    assert len(str(cleaned[c.NODE_ID])) == LABEL_LIMIT
    assert len(str(cleaned[c.GEN_AI_INPUT_MESSAGES])) == 5000 < CONTENT_LIMIT
    assert cleaned[c.TRUNCATED] == (c.NODE_ID,)


@given(st.text(alphabet=st.characters(), max_size=50))
def test_text_can_be_encoded_by_every_exporter(text: str) -> None:
    """A lone surrogate would make a whole file unreadable."""
    cleaned = clean_value(text)
    assert isinstance(cleaned, str)
    cleaned.encode("utf-8")
    assert len(cleaned) == len(text)


scalars = st.one_of(
    st.booleans(), st.integers(), st.floats(), st.text(max_size=20), st.none(), st.binary()
)


@given(st.dictionaries(st.text(min_size=1, max_size=10), st.one_of(scalars, st.lists(scalars))))
def test_the_sdk_keeps_every_cleaned_attribute_unchanged(attributes: dict[str, object]) -> None:
    """The SDK neither drops nor rewrites what has passed the gate."""
    cleaned = clean_attributes(attributes)
    span = TracerProvider().get_tracer("t").start_span("s", attributes=cleaned)
    span.end()
    assert dict(span.attributes or {}) == cleaned  # type: ignore[attr-defined]
