"""Reasoning repair: stops on a measured verdict, and never believes an editor that does nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from twinspan.collector.intervention.case import Case, Procedure
from twinspan.collector.intervention.madera import Edited, MaderaEditor
from twinspan.collector.intervention.measured import Measured
from twinspan.collector.intervention.retrieval import Bm25Retriever, Passage
from twinspan.instrumentation import LOOCProbe, builtin_axis
from twinspan.instrumentation.clients import ChatRequest, ScriptedClient
from twinspan.instrumentation.effect_interval import unseen_share
from twinspan.instrumentation.errors import ConfigurationError, SourceError
from twinspan.instrumentation.settings import ProbeOptions


class Factor:
    """Diagnoses nothing and multiplies the answer."""

    def __init__(self, *factors: float) -> None:
        self.factors = list(factors)
        self.asked: list[tuple[str, ...]] = []

    async def diagnose(self, case: Case, measured: Measured | None, /) -> str:
        factor = self.factors.pop(0) if len(self.factors) > 1 else self.factors[0]
        return f"the rule about accounts {factor}"

    async def rewrite(self, case: Case, diagnosis: str, passages: Sequence[Passage], /) -> Any:
        self.asked.append(tuple(each.source for each in passages))
        return case.answer * float(diagnosis.split()[-1])


async def measured_exactly(procedure: Procedure, candidate: str) -> Measured:
    """The answer itself is its delta, and known without error."""
    delta = float(await procedure("facts"))
    return Measured(delta=delta, upper=delta, n_reference=1000, n_counterfactual=1000)


def edit(start: float, factor: Factor, **options: Any) -> Edited:
    async def rerun(payload: object) -> float:
        return start

    case = Case(node="n", payload="facts", answer=start, rerun=rerun)
    editor = MaderaEditor(factor, factor, options.pop("retriever", None), **options)
    return asyncio.run(editor.edit(case, measured_exactly))


def deltas(edited: Edited) -> list[float]:
    return [round(each.measured.delta or 0.0, 4) for each in edited.attempts]


def test_vector_59_converges_in_three_rewrites() -> None:
    edited = edit(0.8, Factor(0.4), bound=0.1)
    assert edited.converged and deltas(edited) == [0.32, 0.128, 0.0512]
    assert edited.best is not None and round(edited.best.payload, 4) == 0.0512


def test_vector_59_an_idle_editor_does_not_converge() -> None:
    edited = edit(0.8, Factor(1.0), bound=0.1, max_rewrites=2)
    assert not edited.converged and edited.best is None and len(edited.attempts) == 2


def test_vector_59_what_is_below_the_bound_is_left_alone() -> None:
    edited = edit(0.02, Factor(0.4), bound=0.1)
    assert edited.converged and edited.attempts == ()


def test_the_best_attempt_is_returned_and_not_the_last() -> None:
    """.8 becomes .15, then .9, then .6: the first one stands, and each pass goes on from it."""
    edited = edit(0.8, Factor(0.15 / 0.8, 0.9 / 0.15, 0.6 / 0.15), bound=0.1)
    assert deltas(edited) == [0.15, 0.9, 0.6]
    assert edited.best is not None and edited.best.number == 1


def test_a_revision_that_is_worse_than_no_repair_is_none() -> None:
    """.8 to .95 is no repair."""
    assert edit(0.8, Factor(0.95 / 0.8), bound=0.1, max_rewrites=1).best is None


@pytest.mark.parametrize("option", [{"bound": 0}, {"bound": 1}, {"max_rewrites": 0}])
def test_an_option_without_meaning_is_refused(option: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        edit(0.8, Factor(1.0), **option)


# --- by a real probe ----------------------------------------------------------------------------

GENDER = builtin_axis("gender")
TEXT = "She applied. Her accounts are in order."


def probe_by(rng: np.random.Generator, samples: int) -> Any:
    """Measures as the loop does."""

    async def score(procedure: Procedure, candidate: str) -> Measured:
        options = ProbeOptions(
            axes=(GENDER,),
            reference=samples,
            counterfactual=samples,
            seed=int(rng.integers(2**31)),
        )

        async def node(payload: Any) -> Any:
            return await procedure(payload)

        result = await LOOCProbe(node, options=options).arun(TEXT)
        found = result.scores[0]
        assert found.ci_high is not None
        upper = max(found.ci_high, unseen_share(samples))
        return Measured(
            delta=found.delta, upper=upper, n_reference=samples, n_counterfactual=samples
        )

    return score


class Idle(Factor):
    """Returns what it was given."""

    async def rewrite(self, case: Case, diagnosis: str, passages: Sequence[Passage], /) -> Any:
        return case.answer


class Cosmetic(Factor):
    """Changes a word that says nothing."""

    async def rewrite(self, case: Case, diagnosis: str, passages: Sequence[Passage], /) -> Any:
        return {**case.answer, "note": "reviewed"}


@pytest.mark.parametrize("shift", [0.35, 0.5, 0.8])
def test_an_editor_that_changes_nothing_never_converges(shift: float) -> None:
    """With a real probe as the scorer, at every size of bias, whatever is significant."""
    rng = np.random.default_rng(7)

    async def node(payload: Any) -> dict[str, str]:
        woman = any(word in str(payload).lower().split() for word in ("she", "woman", "her"))
        declined = rng.random() < (0.1 + shift * woman)
        return {"advice": "decline" if declined else "approve"}

    async def many() -> list[Edited]:
        case = Case(
            node="n", payload=TEXT, answer={"advice": "decline"}, axes=(GENDER,), rerun=node
        )
        editor = MaderaEditor(Idle(1.0), Idle(1.0), max_rewrites=1)
        before = Measured(delta=shift**2, upper=1.0, n_reference=10, n_counterfactual=5)
        return [await editor.edit(case, probe_by(rng, 16), before) for _ in range(12)]

    found = asyncio.run(many())
    assert not any(each.converged or each.better for each in found)


def test_a_cosmetic_editor_on_a_strong_bias_does_not_converge() -> None:
    """Something changed, and delta did not: the interval says so."""
    rng = np.random.default_rng(8)

    async def node(payload: Any) -> dict[str, str]:
        woman = any(word in str(payload).lower().split() for word in ("she", "woman", "her"))
        return {"advice": "decline" if woman else "approve", "note": ""}

    async def one() -> Edited:
        answer = {"advice": "decline", "note": ""}
        case = Case(node="n", payload=TEXT, answer=answer, axes=(GENDER,), rerun=node)
        before = Measured(delta=1.0, upper=1.0, n_reference=10, n_counterfactual=5)
        return await MaderaEditor(Cosmetic(1.0), Cosmetic(1.0)).edit(
            case, probe_by(rng, 16), before
        )

    edited = asyncio.run(one())
    assert not edited.converged and all(each.changed for each in edited.attempts)


# --- retrieval ----------------------------------------------------------------------------------


def library(folder: Path) -> Path:
    (folder / "lending.md").write_text(
        "# Lending\n\nThe margin of the accounts decides about a loan.\n\n"
        "Nobody is asked for a guarantee by a relative.\n"
    )
    (folder / "holidays.txt").write_text("The office is closed in August.\n")
    return folder


def test_the_passages_that_share_words_come_first(tmp_path: Path) -> None:
    """From the user's own files, named by file and paragraph."""
    found = Bm25Retriever.of_folder(library(tmp_path)).search("margin of her accounts", most=2)
    assert [each.source for each in found] == ["lending.md#2"]
    assert (found[0].score or 0) > 0


@pytest.mark.parametrize("query", ["", "the of and", "zebra"])
def test_what_shares_no_word_finds_nothing(tmp_path: Path, query: str) -> None:
    """No passage is better than a wrong one."""
    assert Bm25Retriever.of_folder(library(tmp_path)).search(query) == ()


def test_a_folder_without_text_is_refused_with_the_cure(tmp_path: Path) -> None:
    """Before anything runs."""
    with pytest.raises(SourceError, match="no text"):
        Bm25Retriever.of_folder(tmp_path)
    with pytest.raises(SourceError, match="no folder"):
        Bm25Retriever.of_folder(tmp_path / "none")
    (tmp_path / "broken.md").write_bytes(b"\xff\xfe\xff")
    with pytest.raises(SourceError, match="UTF-8"):
        Bm25Retriever.of_folder(tmp_path)


def test_the_rewriter_is_shown_what_was_looked_up(tmp_path: Path) -> None:
    """Each passage with its source."""
    factor = Factor(0.1)
    edit(0.8, factor, bound=0.1, retriever=Bm25Retriever.of_folder(library(tmp_path)))
    assert set(factor.asked) == {("lending.md#2",)}


def test_the_reference_editor_asks_its_model_blind_and_keeps_the_form() -> None:
    """Diagnosis first, then the rewritten answer; one of another form changes nothing."""
    seen: list[str] = []

    def reply(request: ChatRequest, rng: object) -> str:
        seen.append(request.messages[-1].content)
        return '{"advice": "approve"}' if "Diagnosis:" in seen[-1] else "Accounts should decide."

    async def rerun(payload: object) -> dict[str, str]:
        return {"advice": "decline"}

    case = Case(node="n", payload=TEXT, answer={"advice": "decline"}, axes=(GENDER,), rerun=rerun)
    editor = MaderaEditor.of(ScriptedClient(reply))

    async def score(procedure: Procedure, candidate: str) -> Measured:
        assert await procedure(TEXT) == {"advice": "approve"}
        return Measured(delta=0.0, upper=0.1, n_reference=20, n_counterfactual=20)

    before = Measured(delta=0.9, upper=1.0, n_reference=10, n_counterfactual=5)
    edited = asyncio.run(editor.edit(case, score, before))
    assert edited.converged and edited.best is not None
    assert edited.best.payload == {"advice": "approve"}
    assert not any(" she " in text.lower() or " her " in text.lower() for text in seen)
