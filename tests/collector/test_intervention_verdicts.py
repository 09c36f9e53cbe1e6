"""Reading what skeptics write: anything that is not plainly a verdict is an abstention."""

from __future__ import annotations

import json
from dataclasses import dataclass

import pytest
from langchain_core.messages import AIMessage

from twinspan.collector.intervention.quotes import found_in
from twinspan.collector.intervention.revisions import refit
from twinspan.collector.intervention.verdicts import read_review
from twinspan.instrumentation.errors import MalformedReply

READABLE = {
    "bare": ("STANDS", "stands"),
    "lower case": ("revise", "revise"),
    "mixed case with a full stop": ("Reject.", "reject"),
    "first line, then prose": ("REVISE\nThe third year is left out.", "revise"),
    "prose, then a labelled line": (
        "I looked at it for a while.\n\nVerdict: revise, since nothing supports it.",
        "revise",
    ),
    "Markdown heading": ("## Verdict: REJECT\n\nNo ground.", "reject"),
    "Markdown bold label": ("**Verdict:** stands", "stands"),
    "Markdown bold whole": ("**Verdict: Revise**", "revise"),
    "bullet": ("- Verdict: revise\n- Reason: none", "revise"),
    "numbered": ("1. REJECT - it follows from nothing", "reject"),
    "label in German": ("Urteil: REVISE", "revise"),
    "label in French, with a space": ("Mon verdict : REJECT", "reject"),
    "label with a full-width colon": ("结论\uff1aREVISE", "revise"),
    "JSON": ('{"verdict": "revise"}', "revise"),
    "JSON, other case": ('{"Verdict": "REJECT"}', "reject"),
    "JSON in a fence": ('```json\n{"verdict": "stands"}\n```', "stands"),
    "JSON in prose": ('Here you are: {"verdict": "revise"} - that is it.', "revise"),
    "JSON after another object": ('{"note": 1}\n{"verdict": "reject"}', "reject"),
    "said twice alike": ('Verdict: revise\n\n{"verdict": "revise"}', "revise"),
}

UNREADABLE = {
    "nothing": ("", "empty"),
    "blanks": (" \n ", "empty"),
    "prose without a verdict": ("It seems fine to me, well done.", "no_verdict"),
    "the word in a sentence": ("It stands to reason that she was declined.", "no_verdict"),
    "a negated word in a sentence": ("I cannot say that it STANDS", "no_verdict"),
    "another language": ("Die Antwort ist in Ordnung.", "no_verdict"),
    "a verdict in another language": ("Urteil: ABGELEHNT", "no_verdict"),
    "agreement in other words": ("AGREE", "no_verdict"),
    "two verdicts on one line": ("STANDS or REVISE", "no_verdict"),
    "two verdicts, taken back": ("STANDS, no, rather REVISE", "two_verdicts"),
    "two lines": ("Verdict: stands\nVerdict: revise", "two_verdicts"),
    "two objects": ('{"verdict": "stands"} {"verdict": "reject"}', "two_verdicts"),
    "line against object": ('STANDS\n{"verdict": "reject"}', "two_verdicts"),
    "an object with a word of its own": ('{"verdict": "looks good"}', "unknown_verdict"),
    "an object with a null": ('{"verdict": ""}', "unknown_verdict"),
    "cut-off JSON": ('{"verdict": "stan', "no_verdict"),
    "a key of another kind": ('{"answer": "stands"}', "no_verdict"),
    "abstaining on purpose": ('{"verdict": "abstain"}', "abstained"),
}


@pytest.mark.parametrize(("text", "stance"), READABLE.values(), ids=READABLE)
def test_a_plain_verdict_is_read_in_any_dress(text: str, stance: str) -> None:
    """Around it there may be prose, Markdown, another language, another case."""
    assert read_review(text).stance == stance


@pytest.mark.parametrize(("text", "why"), UNREADABLE.values(), ids=UNREADABLE)
def test_e17_what_is_not_plainly_a_verdict_is_never_agreement(text: str, why: str) -> None:
    """It abstains, and says why."""
    review = read_review(text)
    assert (review.stance, review.why) == ("abstain", why)


@pytest.mark.parametrize(
    ("said", "read"),
    [(0.8, 0.8), ("0.8", 0.8), (80, 0.8), ("80%", 0.8), (1, 1.0), (-1, None), ("very", None)],
)
def test_a_confidence_is_a_share_or_absent(said: object, read: float | None) -> None:
    """No number is made up where none was said."""
    reply = json.dumps({"verdict": "stands", "confidence": said})
    assert read_review(reply).confidence == read


def test_a_plain_reply_carries_confidence_evidence_and_a_revision_below_a_rule() -> None:
    """For models that follow no schema."""
    review = read_review(
        "REVISE\nConfidence: 70%\nEvidence: \u201cnever missed a payment\u201d\n---\napprove"
    )
    assert (review.confidence, review.evidence) == (0.7, ("never missed a payment",))
    assert review.revision == "approve"


def test_a_verdict_below_the_rule_belongs_to_the_revision() -> None:
    """The revised answer may use the words of a verdict."""
    assert read_review("REVISE\n---\nreject").stance == "revise"


# --- evidence -------------------------------------------------------------------------------

SOURCE = "She has traded for nine years, and has never missed a payment."


@pytest.mark.parametrize(
    "quote",
    [
        "none found",
        "https://example.org/study",
        "EVIDENCE",
        "nine",
        "traded for ten years",
        "",
    ],
)
def test_e17_evidence_is_what_stands_in_the_case_and_not_a_keyword(quote: str) -> None:
    """A claim, a link and a word as short as any count for nothing."""
    assert found_in([quote], [SOURCE]) == ()


@pytest.mark.parametrize("quote", ["traded for nine years", "“TRADED  for\nnine years…”"])
def test_a_quote_is_found_whatever_its_case_and_spacing(quote: str) -> None:
    """Models copy loosely."""
    assert found_in([quote], [SOURCE]) == (quote,)


# --- revisions ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Advice:
    """A structured answer."""

    advice: str
    years: int


def test_a_revision_keeps_the_answers_form() -> None:
    """Text, mappings, sequences, dataclasses and chat messages keep their types."""
    message = AIMessage(content="decline", id="7")
    answer = {"a": Advice("decline", 3), "b": ("low", 1.5), "m": [message]}
    revised = refit(answer, {"a": {"advice": "approve"}, "b": ["high", 2], "m": ["approve"]})
    assert revised["a"] == Advice("approve", 3)
    assert revised["b"] == ("high", 2.0)
    assert isinstance(revised["m"][0], AIMessage) and revised["m"][0].content == "approve"
    assert revised["m"][0].id == "7" and message.content == "decline"


@pytest.mark.parametrize(
    "revision",
    ["approve", '{"verdict": "approve"}', '{"advice": 1}', "[1]", '{"years": 1.5}', "null"],
)
def test_a_revision_of_another_form_is_refused(revision: str) -> None:
    """The next agent could not read it."""
    with pytest.raises(MalformedReply):
        refit({"advice": "decline", "years": 3}, revision)


def test_a_text_is_revised_by_text_even_if_it_looks_like_json() -> None:
    """An answer that is a text stays one."""
    assert refit("3", "42") == "42"
    assert refit("decline", '"approve"') == "approve"
