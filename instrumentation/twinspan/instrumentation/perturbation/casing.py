"""Carries the case of a word over to the word that takes its place."""

from __future__ import annotations


def match_case(found: str, listed: str, replacement: str) -> str:
    """Write a replacement in the case of the word it replaces.

    A word found exactly as its vocabulary lists it is replaced by the replacement as listed.
    Otherwise the way in which it departs from the list is carried over: all capitals, every
    word capitalised, an initial capital, or all small letters.

    Args:
        found: the word as it stands in the text.
        listed: the same word as the vocabulary lists it.
        replacement: its counterpart as listed.

    >>> match_case("HIS", "his", "her"), match_case("He", "he", "she")
    ('HER', 'She')
    >>> match_case("old man", "Old Man", "Young Man"), match_case("Dr", "Dr", "Prof")
    ('young man', 'Prof')
    """
    if found == listed:
        return replacement
    if found.isupper() and sum(map(str.isalpha, found)) > 1:
        return replacement.upper()
    if found.istitle() and " " in found:
        return " ".join(capitalised(word) for word in replacement.split(" "))
    if found[:1].isupper():
        return capitalised(replacement)
    if found.islower() and not listed.islower():
        return replacement.lower()
    return replacement


def capitalised(text: str) -> str:
    """The text with its first letter in upper case, the rest as it is.

    >>> capitalised("the person's")
    "The person's"
    """
    return text[:1].upper() + text[1:]
