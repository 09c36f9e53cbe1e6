"""The studies on a real language model: their smallest part, where `make real-model` was run."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chat_server import ChatServer, chat, clean_environment
from click.testing import CliRunner
from studies import local_model, neutral, repeat
from studies.__main__ import main
from studies.desks import FAIR, SEEDED, Speaker, person
from studies.endpoint import model_client, model_settings
from studies.sizes import SIZES

from twinspan.analysis.cli import main as twinspan
from twinspan.instrumentation.clients import (
    Blocking,
    ChatRequest,
    JsonSchema,
    OpenAICompatibleClient,
    Sampling,
)

needs_model = pytest.mark.skipif(not local_model.is_installed(), reason=local_model.MISSING)
real = [pytest.mark.real_model, needs_model]


@pytest.fixture(autouse=True)
def _no_server_of_the_surrounding_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    clean_environment(monkeypatch)


@pytest.fixture(scope="module")
def client() -> Iterator[OpenAICompatibleClient]:
    with pytest.MonkeyPatch.context() as patch:
        clean_environment(patch)
        with model_client(seed=1) as found:
            yield found


def chances(speaker: Speaker, desk: Any, name: str, noun: str, pronoun: str) -> dict[str, float]:
    law = speaker.law(desk, person(name, noun, pronoun, "bakery"))
    return {word: math.exp(log_prob) for word, log_prob in law.items()}


# --- without the model ------------------------------------------------------------------------


def test_without_the_model_a_study_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(local_model, "find_spec", lambda name: None)
    result = CliRunner().invoke(main, ["neutral", "--out", str(tmp_path / "out")])
    assert result.exit_code == 1
    assert "run `make real-model`" in result.output


def test_any_server_is_asked_by_url_and_key_of_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The local model need not be there."""
    monkeypatch.setattr(local_model, "find_spec", lambda name: None)
    with ChatServer() as server:
        server.script("/chat/completions", chat("yes"))
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "key-of-mine")
        monkeypatch.setenv("TWINSPAN_MODEL", "some-model")
        with model_settings() as settings, Blocking(OpenAICompatibleClient(settings)) as asked:
            assert asked.complete(ChatRequest.of("Admit?")).text == "yes"
        (received,) = server.received
    assert received.body["model"] == "some-model"
    assert received.headers["authorization"] == "Bearer key-of-mine"


def test_the_study_of_effects_asks_for_its_templates(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["effects", "--out", str(tmp_path / "out")])
    assert result.exit_code == 2
    assert "--data" in result.output


# --- the model through our client -------------------------------------------------------------


class TestTheRealModel:
    """What the studies rest on."""

    pytestmark = real

    def test_gives_the_same_law_again_and_it_sums_to_one(
        self, client: OpenAICompatibleClient
    ) -> None:
        speaker = Speaker(client)
        first = chances(speaker, FAIR["analyst_a"], "Emily", "woman", "she")
        other = chances(speaker, FAIR["analyst_a"], "James", "man", "he")
        again = chances(speaker, FAIR["analyst_a"], "Emily", "woman", "she")
        speaker.close()
        assert math.isclose(sum(first.values()), 1, abs_tol=1e-6)
        assert first != other
        assert first == again, "what was asked in between changed the law"

    def test_treats_women_worse_only_where_its_record_does(
        self, client: OpenAICompatibleClient
    ) -> None:
        speaker = Speaker(client)
        woman, man = (
            chances(speaker, SEEDED, *who)
            for who in (("Emily", "woman", "she"), ("James", "man", "he"))
        )
        fair_woman, fair_man = (
            chances(speaker, FAIR["analyst_a"], *who)
            for who in (("Emily", "woman", "she"), ("James", "man", "he"))
        )
        speaker.close()
        assert woman["declined"] > 0.5 > man.get("declined", 0)
        assert man["approved"] > 0.5 > woman["approved"]
        assert abs(fair_woman["approved"] - fair_man["approved"]) < 0.3

    def test_answers_in_the_form_that_a_schema_asks_for(
        self, client: OpenAICompatibleClient
    ) -> None:
        advice = {"enum": ["approve", "refer", "decline"]}
        schema = {
            "type": "object",
            "properties": {"advice": advice},
            "required": ["advice"],
            "additionalProperties": False,
        }
        plain = ChatRequest.of("Emily asks for a loan. Answer with JSON.")
        request = replace(
            plain,
            schema=JsonSchema(name="advice", schema=schema),
            sampling=Sampling(temperature=0, max_tokens=40),
        )
        with Blocking(client) as asked:
            answer: Any = asked.complete(request).json()
        assert answer["advice"] in advice["enum"]

    def test_scores_candidates_by_the_first_token_of_a_chat(
        self, client: OpenAICompatibleClient
    ) -> None:
        with Blocking(client) as asked:
            scores = asked.score("Emily asks for a loan. Answer A or B.", ["A", "B"])
        masses = [math.exp(value) for value in scores.log_probs.values()]
        assert scores.method == "first_token"
        assert math.isclose(sum(masses), 1, abs_tol=1e-6)
        assert 0 < math.exp(scores.log_probs["A"]) < 1

    def test_draws_the_same_words_with_the_same_seed(self, client: OpenAICompatibleClient) -> None:
        speaker = Speaker(client)
        case = person("Emily", "woman", "she", "bakery")
        first, again = (
            [speaker.say(FAIR["reviewer"], case, seed=seed) for seed in range(8)] for _ in range(2)
        )
        speaker.close()
        assert first == again
        assert len(set(first)) > 1

    def test_ends_when_it_was_never_asked(self, tmp_path: Path) -> None:
        """A study that stops before its first question gives the model back."""
        found = CliRunner().invoke(
            main, ["effects", "--data", str(tmp_path), "--out", str(tmp_path / "out")]
        )
        assert found.exit_code == 1
        assert "winogender" in found.output

    def test_places_like_texts_nearer_than_unlike_ones(self) -> None:
        texts = ["The loan was approved.", "The credit was approved.", "Whales sing at night."]
        with (
            local_model.served(embeddings=True) as url,
            Blocking(
                OpenAICompatibleClient(base_url=url, model=local_model.NAME, trust_env=False)
            ) as asked,
        ):
            rows = asked.embed(texts)
        near, far = (
            float(rows[0] @ row) / float(np.linalg.norm(rows[0]) * np.linalg.norm(row))
            for row in rows[1:]
        )
        assert near > far


@pytest.mark.real_model
@needs_model
def test_another_process_gives_the_same_law_and_tokens_together_do_not() -> None:
    """Token by token; the study of repeats has two threads and further batches."""
    one_by_one = repeat.chances()
    assert len({*one_by_one, *repeat.of_another_process()}) == 1
    assert repeat.chances(tokens_at_once=512)[1:] != one_by_one[1:]


@pytest.mark.real_model
@pytest.mark.skipif(
    not local_model.is_installed(local_model.MODELS["gemma3"]),
    reason="the second model is not installed; run `make second-model`",
)
def test_the_second_model_is_asked_like_the_first() -> None:
    with model_client(local=local_model.MODELS["gemma3"]) as client:
        speaker = Speaker(client)
        law = chances(speaker, FAIR["analyst_a"], "Emily", "woman", "she")
        speaker.close()
    assert math.isclose(sum(law.values()), 1, abs_tol=1e-6)
    assert law["approved"] > 0.01


@pytest.mark.real_model
@needs_model
def test_the_smallest_study_leaves_a_record_that_verifies(
    client: OpenAICompatibleClient, tmp_path: Path
) -> None:
    speaker = Speaker(client, remember=True)
    neutral.run(speaker, replace(SIZES["smallest"], probes=1), tmp_path)
    speaker.close()
    with (tmp_path / "neutral.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["probes"] for row in rows] == ["1", "1", "1"]
    # The same input over and over gives one law, and any other name another one.
    assert rows[-1]["rejected at .01"].startswith("1.000")
    for folder in (tmp_path / "spans").iterdir():
        assert CliRunner().invoke(twinspan, ["verify", str(folder)]).exit_code == 0
