"""Terms are found in one pass, in any script, the longest first, in the case they came in."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twinspan.instrumentation.perturbation import Axis, Slot, Substitution
from twinspan.instrumentation.perturbation.casing import match_case
from twinspan.instrumentation.perturbation.matching import Matcher, folded, term_key


def found(terms: list[str], text: str) -> list[str]:
    return [text[start:end] for start, end, _ in Matcher(terms).find(text)]


def swapped(substitutions: dict[str, str], text: str) -> str:
    pairs = [Substitution(old, new) for old, new in substitutions.items()]
    twin: str = Axis.from_substitutions("axis", pairs).swap(text).payload
    return twin


def test_a_term_inside_a_longer_word_is_none() -> None:
    """The text "the theme here" holds "he" four times and speaks of nobody."""
    assert found(["he"], "the theme here, heap_he he_ 1he") == []


@pytest.mark.parametrize("text", ["C++ and C", "use C++.", "(C++)", "C++", "C++20", "her C++"])
def test_a_term_that_ends_in_punctuation_is_found(text: str) -> None:
    """A word boundary in the usual sense never follows a plus sign."""
    assert "C++" in found(["C++"], text)


@pytest.mark.parametrize("text", [".NET", "use .NET now", "(.NET)", "die .NET-Welt"])
def test_a_term_that_starts_in_punctuation_is_found(text: str) -> None:
    """What stands before a mark does not matter."""
    assert found([".NET"], text) == [".NET"]


def test_a_mark_at_one_end_leaves_the_other_end_strict() -> None:
    """A term in "Mr.Li" is one, "Emr." holds none."""
    assert found(["Mr."], "Mr.Li Emr. Mr.") == ["Mr.", "Mr."]


@pytest.mark.parametrize(
    ("terms", "text", "expected"),
    [
        (["她", "他"], "如果她来,他也来。", ["她", "他"]),  # Han, no spaces
        (["彼女", "彼"], "彼女は彼を知る", ["彼女", "彼"]),  # Japanese, longest first
        (["หญิง"], "ผู้หญิงคนนั้น", ["หญิง"]),  # Thai, no spaces
        (["그녀", "그"], "그녀는 그를 안다", ["그녀", "그"]),  # Korean, particles attached
        (["그"], "로그 그는", ["그"]),  # not inside a Korean word
        (["он", "она"], "Он сказал, что она онлайн", ["Он", "она"]),  # Cyrillic
        (["वह"], "वह वही नहीं", ["वह"]),  # a vowel sign makes it another word
        (["هو"], "هو وهو", ["هو"]),  # Arabic
        (["Emily"], "这是Emily的信", ["Emily"]),  # Latin within Han
        (["他"], "Tell他 now", ["他"]),  # Han within Latin
    ],
)
def test_a_term_is_found_in_any_script(terms: list[str], text: str, expected: list[str]) -> None:
    """Where a script has no spaces every position may be a boundary."""
    assert found(terms, text) == expected


def test_a_combining_mark_belongs_to_the_word() -> None:
    """A decomposed accent makes another word, and finds its own."""
    decomposed = unicodedata.normalize("NFD", "josé")
    assert found(["jose"], f"{decomposed} jose") == ["jose"]
    assert found(["José"], f"{decomposed} José") == [decomposed, "José"]


def test_a_word_joiner_belongs_to_the_word() -> None:
    """A zero-width non-joiner holds a Persian word together."""
    assert found(["می"], "می\u200cکنم می") == ["می"]


def test_the_longest_term_wins() -> None:
    """A phrase shields the words in it."""
    terms = ["old", "old man", "man", "old man of hoy"]
    assert found(terms, "old man of Hoy, old man of war, an old one") == [
        "old man of Hoy",
        "old man",
        "old",
    ]


def test_a_longer_term_that_ends_inside_a_word_gives_way_to_a_shorter_one() -> None:
    """The text "old mannered" holds "old", not "old man"."""
    assert found(["old man", "old"], "old mannered") == ["old"]
    assert found(["old man", "old"], "old manné") == ["old"]


def test_typography_makes_no_other_term() -> None:
    """Wrapped lines, curly apostrophes and hard hyphens are spellings of one term."""
    assert found(["ma'am"], "Ma\u2019am") == ["Ma\u2019am"]
    assert found(["34-year-old"], "34\u2011year-old") == ["34\u2011year-old"]
    assert found(["young man"], "young\n   man") == ["young\n   man"]


def test_positions_hold_where_lower_case_is_longer() -> None:
    """The Turkish dotted capital I has a lower case of two code points."""
    text = "İİİ he"
    assert list(Matcher(["he"]).find(text)) == [(4, 6, "he")]


def test_no_terms_find_nothing() -> None:
    """An empty vocabulary is silent."""
    assert found([], "he") == []


@given(st.text())
@settings(deadline=None)
def test_folding_moves_no_position(text: str) -> None:
    """One code point in, one out."""
    assert len(folded(text)) == len(text)


@given(st.text(min_size=1))
@settings(deadline=None)
def test_a_key_is_its_own_key(term: str) -> None:
    """Normalising twice changes nothing."""
    assert term_key(term_key(term)) == term_key(term)


WORDS = st.sampled_from(["he", "she", "her", "hers", "the", "theme", "man", "mankind", "Mr"])
GAPS = st.sampled_from([" ", ", ", ". ", "-", "\n", "_", "", "'s "])


@given(st.lists(st.tuples(WORDS, GAPS)))
@settings(deadline=None)
def test_ascii_words_are_found_where_a_plain_pattern_finds_them(
    parts: list[tuple[str, str]],
) -> None:
    """The trie agrees with an alternation of whole words, sorted by length."""
    terms = ["he", "her", "hers", "she", "man", "mr"]
    text = "".join(word + gap for word, gap in parts)
    plain = re.compile(rf"\b(?:{'|'.join(sorted(terms, key=len, reverse=True))})\b", re.IGNORECASE)
    spans = [(start, end) for start, end, _ in Matcher(terms).find(text)]
    assert spans == [match.span() for match in plain.finditer(text)]
    # The pattern for any script agrees with the one for ASCII.
    marked = [(start, end) for start, end, _ in Matcher(terms).find(f"{text} é")]
    assert marked == spans


@pytest.mark.parametrize(
    ("seen", "listed", "replacement", "expected"),
    [
        ("HE", "he", "she", "SHE"),
        ("He", "he", "she", "She"),
        ("he", "he", "she", "she"),
        ("hE", "he", "she", "she"),
        ("A", "a", "the", "The"),  # one letter is no ALL CAPS
        ("USA", "USA", "Canada", "Canada"),  # as listed stays as listed
        ("Usa", "USA", "Canada", "Canada"),
        ("emily", "Emily", "James", "james"),
        ("EMILY", "Emily", "James", "JAMES"),
        ("mr", "Mr", "Ms", "ms"),
        ("Old Man", "old man", "young woman", "Young Woman"),
        ("Old man", "old man", "young woman", "Young woman"),
        ("HE'S", "he's", "she's", "SHE'S"),
        ("她", "她", "他", "他"),
        ("Он", "он", "она", "Она"),
    ],
)
def test_case_is_carried_over(seen: str, listed: str, replacement: str, expected: str) -> None:
    """All capitals, an initial capital, and all small letters each have their twin."""
    assert match_case(seen, listed, replacement) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("he took his coat", "she took her coat"),
        ("He and HIS dog", "She and HER dog"),
        ("the theme here", "the theme here"),
        ("he is the manager", "she is the manager"),
    ],
)
def test_literal_substitutions_keep_case_and_words(text: str, expected: str) -> None:
    """Capitals are carried over, and parts of words are not words."""
    assert swapped({"he": "she", "his": "her", "man": "woman"}, text) == expected


def test_a_swap_in_both_directions_never_undoes_itself() -> None:
    """One substitution after the other would make it "he met he"."""
    assert swapped({"he": "she", "she": "he"}, "he met she") == "she met he"


def test_substitutions_reach_across_scripts_and_punctuation() -> None:
    """In a script without spaces, and before a full stop."""
    assert swapped({"她": "他", "C++": "Ada"}, "如果她会C++。") == "如果他会Ada。"


def test_a_pattern_is_literal() -> None:
    """What means something to a regular expression means itself."""
    assert swapped({"a.c": "x", "(b)": "[b]"}, "abc a.c (b)") == "abc x [b]"


def test_spellings_can_be_restricted() -> None:
    """The word "Miss" is a title, "miss" a verb, and "MS" a disease."""
    slots = (
        Slot(name="title", forms={"w": ("Miss", "Ms"), "m": ("Mr",)}, case="exact"),
        Slot(name="race", forms={"w": ("White",), "m": ("Black",)}, case="capitalised"),
    )
    axis = Axis(name="axis", groups=("w", "m"), slots=slots)
    assert axis.swap("Miss it? I miss her MS.", to="m").payload == "Mr it? I miss her MS."
    text = "A White man in a white coat. WHITE."
    assert axis.swap(text, to="m").payload == "A Black man in a white coat. BLACK."
