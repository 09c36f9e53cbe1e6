"""Finds passages in the user's own documents for the reasoning repair."""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, Protocol, Self

import numpy as np

from twinspan.instrumentation.errors import ConfigurationError, MissingExtra, SourceError

SUFFIXES: Final = frozenset({".txt", ".md", ".rst"})
"""Files that a folder of documents is read from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A piece of a document.

    Attributes:
        source: the document and the place in it, such as `policy.md#3`.
        text: its words; content, never exported unless content is.
        score: how well it fits the query, in the retriever's own units; larger is better.
    """

    source: str
    text: str = field(repr=False)
    score: float | None = None


class Retriever(Protocol):
    """Looks passages up; plain or async."""

    def search(
        self, query: str, /, *, most: int
    ) -> Sequence[Passage] | Awaitable[Sequence[Passage]]:
        """The passages that fit a query best, at most `most`, the best first."""
        ...


class Bm25Retriever:
    """Passages by BM25 (Robertson & Zaragoza 2009), on the library bm25s.

    Args:
        passages: what is searched.

    Raises:
        ConfigurationError: no passage has any word.
        MissingExtra: bm25s is not installed.
    """

    def __init__(self, passages: Iterable[Passage]) -> None:
        if find_spec("bm25s") is None:
            raise MissingExtra("bm25s", extra="retrieval")
        import bm25s  # type: ignore[import-untyped]

        self._passages = [each for each in passages if each.text.strip()]
        if not self._passages:
            raise ConfigurationError("there is no passage to search; give documents with text")
        self._library: Any = bm25s
        self._index: Any = self._library.BM25()
        self._index.index(self._tokens([each.text for each in self._passages]), show_progress=False)

    @classmethod
    def of_folder(cls, folder: Path) -> Self:
        """The paragraphs of the text files below a folder.

        Raises:
            SourceError: the folder cannot be read or has no text file with words in it.
            MissingExtra: bm25s is not installed.
        """
        if not folder.is_dir():
            raise SourceError(f"{str(folder)!r} is no folder; name one with your text files")
        files = sorted(each for each in folder.rglob("*") if each.suffix in SUFFIXES)
        passages = [passage for file in files for passage in paragraphs(file, folder)]
        if not passages:
            kinds = ", ".join(sorted(SUFFIXES))
            raise SourceError(f"{str(folder)!r} has no text in {kinds} files; put some there")
        return cls(passages)

    def search(self, query: str, /, *, most: int = 3) -> Sequence[Passage]:
        """The best passages that share a word with the query; none where nothing does."""
        wanted = self._tokens([query])
        if not wanted or not wanted[0]:
            return ()
        scores = np.asarray(self._index.get_scores(wanted[0]), dtype=np.float64)
        best: list[int] = np.argsort(-scores, kind="stable")[:most].tolist()
        return tuple(
            replace(self._passages[at], score=float(scores[at])) for at in best if scores[at] > 0
        )

    def _tokens(self, texts: list[str]) -> Any:
        return self._library.tokenize(
            texts, stopwords="english", return_ids=False, show_progress=False
        )


def paragraphs(file: Path, folder: Path) -> list[Passage]:
    """The paragraphs of one text file, named by their place.

    Raises:
        SourceError: the file cannot be read as text.
    """
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SourceError(f"{str(file)!r} cannot be read as UTF-8 text: {error}") from error
    pieces = [piece.strip() for piece in text.split("\n\n")]
    name = file.relative_to(folder).as_posix()
    return [
        Passage(source=f"{name}#{number}", text=piece)
        for number, piece in enumerate((piece for piece in pieces if piece), start=1)
    ]
