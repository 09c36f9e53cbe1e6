"""Orders in an agent's own words against fixtures."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shared_data import shared

from twinspan.instrumentation.audit import PENDING, OrderVocabulary, resolve_orders
from twinspan.instrumentation.audit.orders import tokens
from twinspan.instrumentation.errors import ConfigurationError


def met(order: str, *fixtures: str) -> tuple[str, tuple[str, ...]]:
    found = resolve_orders([order], dict.fromkeys(fixtures, "result")).orders[0]
    return found.match, found.fixtures


def test_vector_58_orders_meet_fixtures_by_their_words() -> None:
    ordered = ["Troponin (high-sensitivity or serial)", "12-lead ECG", "Chest X-ray"]
    found = resolve_orders(ordered, {"troponin": "0.02", "ecg": "normal"})
    assert list(found.results.values()) == ["0.02", "normal", PENDING]
    assert found.unresolved == ("Chest X-ray",)


def test_vector_59_an_abbreviation_in_brackets_is_recognised() -> None:
    assert met("Complete blood count (CBC)", "cbc") == ("exact", ("cbc",))


@pytest.mark.parametrize(
    ("order", "fixture"),
    [
        ("Chest X-ray", "cxr"),
        ("X-ray femur", "xray_femur"),
        ("Femur X-ray", "xray_femur"),
        ("Basic metabolic panel", "bmp"),
        ("Liver function tests", "lft"),
        ("LFTs", "lft"),
        ("Complete Blood Count", "cbc"),
        ("UA", "urinalysis"),
        ("EKG", "ecg"),
        ("Abdominal ultrasound", "ultrasound_abdomen"),
        ("RUQ ultrasound", "ultrasound_abdomen"),
        ("Right upper quadrant ultrasound", "ultrasound_abdomen"),
        ("CT abdomen and pelvis without contrast", "ct_abdomen_pelvis"),
        ("Non-contrast CT abdomen/pelvis", "ct_abdomen_pelvis"),
        ("Fingerstick glucose", "glucose"),
        ("Orthostatic vital signs", "orthostatic_vitals"),
        ("Hemoglobin A1c", "hba1c"),
        ("Venous blood gas", "vbg"),
        ("Serum beta-hydroxybutyrate", "bhb"),
    ],
)
def test_synonyms_meet(order: str, fixture: str) -> None:
    _, fixtures = met(order, fixture, "unrelated_thing")
    assert fixtures == (fixture,)


@pytest.mark.parametrize(
    "order",
    [
        "No labs or imaging indicated",
        "None indicated",
        "Defer CT",
        "Clinical observation, no imaging or labs indicated",
        "Avoid ECG",
    ],
)
def test_a_decision_not_to_order_meets_nothing(order: str) -> None:
    assert met(order, "ct", "ecg", "imaging", "labs") == ("refused", ())


def test_an_order_that_could_mean_several_meets_none_of_them() -> None:
    found = resolve_orders(["CT"], {"ct_abdomen": "a", "ct_head": "b"})
    assert found.results["CT"] == PENDING
    assert found.as_dict()["fixture_ambiguities"] == [
        {"ordered": "CT", "candidates": ["ct_abdomen", "ct_head"], "resolved_to": None}
    ]


def test_an_order_that_is_less_exact_meets_the_only_fixture_it_can_mean() -> None:
    assert met("CT", "ct_head", "ecg") == ("broader", ("ct_head",))


def test_the_most_specific_fixture_wins() -> None:
    assert met("Urine culture", "urine", "urine_culture") == ("exact", ("urine_culture",))
    assert met("Urgent urine culture today", "urine", "urine_culture") == (
        "more_specific",
        ("urine_culture",),
    )


def test_an_order_for_two_things_meets_both() -> None:
    found = resolve_orders(["CBC and BMP"], {"cbc": "normal", "bmp": "gap closed", "ecg": "x"})
    assert found.results["CBC and BMP"] == "gap closed; normal"
    assert found.orders[0].match == "several"


def test_duplicates_are_one_key_and_counted() -> None:
    found = resolve_orders(["ECG", "ECG"], {"ecg": "normal"})
    assert (dict(found.results), found.n_duplicates) == ({"ECG": "normal"}, 1)


def test_an_order_without_words_is_unresolved() -> None:
    assert met("???", "ecg") == ("none", ())


def test_without_a_vocabulary_words_are_what_they_are() -> None:
    plain = OrderVocabulary()
    assert resolve_orders(["Chest X-ray"], {"cxr": "clear"}, vocabulary=plain).unresolved
    assert not resolve_orders(["no ecg"], {"ecg": "x"}, vocabulary=plain).unresolved


def test_a_vocabulary_is_read_strictly() -> None:
    own = OrderVocabulary.from_toml('synonyms = [["loan", "credit line"]]')
    assert own.concepts("a credit line") == {"a", "loan"}
    for wrong in ('synonym = [["a", "b"]]', 'synonyms = [["a"]]', "synonyms ="):
        with pytest.raises(ConfigurationError):
            OrderVocabulary.from_toml(wrong)


names = st.sampled_from(["ct_head", "ct_abdomen", "cbc", "bmp", "ecg", "urine_culture", "troponin"])


@settings(deadline=None)
@given(st.sets(names), st.lists(st.text(max_size=20), max_size=4))
def test_every_order_gets_one_answer(fixtures: set[str], ordered: list[str]) -> None:
    found = resolve_orders(ordered, {name: f"<{name}>" for name in fixtures})
    assert list(found.results) == list(dict.fromkeys(ordered))
    for order in found.orders:
        assert (found.results[order.ordered] == PENDING) is (not order.fixtures)


@settings(deadline=None)
@given(st.sets(names, min_size=1))
def test_a_fixtures_own_name_meets_it(fixtures: set[str]) -> None:
    for name in fixtures:
        assert met(name.replace("_", " ").title(), *fixtures) == ("exact", (name,))


def test_fewer_released_orders_stay_pending_than_did() -> None:
    """Fixtures are rebuilt from what was returned in any replicate, so this is a lower bound."""
    for folder, pending_then in (("floor16", 305), ("floor16_sonnet", 264)):
        ordered: dict[str, list[str]] = {}
        fixtures: dict[str, dict[str, str]] = {}
        for file in sorted(shared(f"fairmedagent/{folder}").glob("rep*.json")):
            for entry in json.loads(file.read_text("utf-8"))["trajectories"]:
                for item, text in entry["actions"]["results"].items():
                    ordered.setdefault(entry["vignette_id"], []).append(item)
                    if text != PENDING:
                        known = fixtures.setdefault(entry["vignette_id"], {})
                        if text not in known.values():
                            known["_".join(tokens(item))] = text
        pending = sum(
            text == PENDING
            for case, items in ordered.items()
            for item in items
            for text in [resolve_orders([item], fixtures.get(case, {})).results[item]]
        )
        assert pending < pending_then
