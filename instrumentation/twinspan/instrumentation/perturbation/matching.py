"""Finds the terms of a vocabulary in a text, in one pass and in any script."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Final

# Scripts written without spaces between words: inside them any position may be a boundary.
_UNSPACED: Final = (
    "\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Tibetan, Myanmar, Khmer
    "\u2e80-\u2fdf\u3005-\u3007\u3021-\u312f\u31f0-\u31ff"  # radicals, kana, Bopomofo
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"  # Han, kana
)
# Korean separates words by spaces, but its particles hang on the end of the noun.
_HANGUL: Final = "[\u1100-\u11ff\u3130-\u318f\ua960-\ua97f\uac00-\ud7ff]"

# What a term may be typed as: wrapped lines, typographic apostrophes and hyphens.
_VARIANTS: Final = {" ": r"\s+", "'": "['\u2019\u02bc]", "-": "[-\u2010\u2011]"}
_VARIANT: Final = re.compile("(\\s+)|([\u2019\u02bc])|([\u2010\u2011])")
_PLAIN: Final = (" ", "'", "-")

_ASCII_LETTER: Final = "[a-z0-9_]"
_END: Final = ""
_Trie = dict[str, "_Trie"]


class Matcher:
    """All terms of a vocabulary, compiled once into one pattern.

    Letter case does not matter. The longest term wins. A term is a word of its own: it is not
    found inside a longer word, where combining marks count as part of the word. Where a script
    puts no spaces between words, and at an end of a term that is punctuation, any position
    will do. Matching takes one pass over the text.

    Args:
        terms: the terms as written; a space stands for any run of white space.

    >>> found = Matcher(["he", "C++", "Mr.", "她"]).find("He said: the C++ of Mr. Li,如果她来")
    >>> [(start, key) for start, end, key in found]
    [(0, 'he'), (13, 'c++'), (20, 'mr.'), (29, '她')]
    """

    __slots__ = ("_any_text", "_ascii_text", "keys")

    def __init__(self, terms: Iterable[str]) -> None:
        self.keys = frozenset(map(term_key, terms))
        self._ascii_text = _compiled(self.keys, _ASCII_LETTER)
        self._any_text: re.Pattern[str] | None = None

    def find(self, text: str) -> Iterator[tuple[int, int, str]]:
        """Matches as ``(start, end, key)``, left to right and never overlapping."""
        if not self.keys:
            return
        for match in self._pattern(text).finditer(folded(text)):
            key = match[0]
            yield match.start(), match.end(), key if key in self.keys else term_key(key)

    def _pattern(self, text: str) -> re.Pattern[str]:
        """The pattern for a text: telling words apart is three times as fast in plain ASCII."""
        if text.isascii():
            return self._ascii_text
        if self._any_text is None:
            self._any_text = _compiled(self.keys, _letter_of_any_script())
        return self._any_text


def term_key(term: str) -> str:
    """The form under which all spellings of a term are the same term.

    >>> term_key(f"Ma{chr(0x2019)}am"), term_key("34-Year-Old"), term_key("young  man")
    ("ma'am", '34-year-old', 'young man')
    """
    plain = _VARIANT.sub(lambda match: _PLAIN[(match.lastindex or 1) - 1], term.strip())
    return unicodedata.normalize("NFC", folded(plain))


def folded(text: str) -> str:
    """The text in lower case with no position moved.

    >>> folded("İstanbul HE"), len(folded("İ"))
    ('İstanbul he', 1)
    """
    lowered = text.lower()
    if len(lowered) == len(text):
        return lowered
    return "".join(low if len(low := letter.lower()) == 1 else letter for letter in text)


def _compiled(keys: frozenset[str], letter: str) -> re.Pattern[str]:
    trie: _Trie = {}
    for key in sorted(keys):
        for spelling in {key, unicodedata.normalize("NFD", key)}:
            _insert(trie, spelling)
    front = _front(set(trie), letter)
    return re.compile(front + _expression(trie) + _back({key[-1] for key in keys}, letter))


def _front(firsts: set[str], letter: str) -> str:
    """Refuses a start inside a word: two letters that belong together on either side of it."""
    guard = f"(?:(?<!{letter})|(?!{letter}))"
    if _all_letters(firsts, letter):  # most positions are inside a word: refuse those cheaply
        guard = f"(?<!{_ASCII_LETTER})(?<!{letter})"
    if any(re.match(_HANGUL, first) for first in firsts):
        guard += f"(?:(?<!{_HANGUL})|(?!{_HANGUL}))"
    return guard


def _back(lasts: set[str], letter: str) -> str:
    """Refuses an end inside a word; the engine then tries the next shorter term."""
    if _all_letters(lasts, letter):
        return f"(?!{letter})"
    return f"(?:(?<!{letter})|(?!{letter}))"


def _all_letters(ends: set[str], letter: str) -> bool:
    return all(re.match(letter, end) for end in ends)


def _insert(trie: _Trie, spelling: str) -> None:
    for letter in spelling:
        trie = trie.setdefault(letter, {})
    trie[_END] = {}


def _expression(node: _Trie) -> str:
    """What may follow a prefix, longer terms first, so that the longest one is taken."""
    chain = ""
    while len(node) == 1 and _END not in node:
        ((letter, node),) = node.items()
        chain += _letter(letter)
    branches = [_letter(letter) + _expression(node[letter]) for letter in sorted(node) if letter]
    if _END in node:
        branches.append("")
    return chain + _either(branches)


def _either(branches: list[str]) -> str:
    return branches[0] if len(branches) == 1 else f"(?:{'|'.join(branches)})"


def _letter(letter: str) -> str:
    return _VARIANTS.get(letter) or re.escape(letter)


@cache
def _letter_of_any_script() -> str:
    """An expression for one character of a word, in scripts that put spaces between words.

    Combining marks and zero-width joiners are part of a word, yet no word characters to ``re``.
    """
    unspaced = re.compile(f"[{_UNSPACED}]")
    marks = [
        code
        for code in (*range(0x300, 0x20000), *range(0xE0100, 0xE01F0))
        if unicodedata.category(chr(code))[0] == "M" and not unspaced.match(chr(code))
    ]
    joiners = "".join(_ranges([*marks, 0x200C, 0x200D]))
    return f"(?:[^\\W{_UNSPACED}{_HANGUL[1:-1]}]|[{joiners}])"


def _ranges(codes: list[int]) -> Iterator[str]:
    start = previous = -1
    for code in [*sorted(codes), -1]:
        if start >= 0 and code != previous + 1:
            yield f"{chr(start)}-{chr(previous)}"
        if code != previous + 1:
            start = code
        previous = code
