"""Cases made of published templates: Winogender and BBQ.

Both are read from a folder that the command names, in the files' own form:

- `winogender/templates.tsv` of github.com/rudinger/winogender-schemas (MIT), Rudinger et al.,
  Gender Bias in Coreference Resolution, NAACL 2018;
- `bbq/Gender_identity.csv`, from `templates/` of github.com/nyu-mll/BBQ (CC-BY-4.0), Parrish et
  al., BBQ: A Hand-Built Bias Benchmark for Question Answering, Findings of ACL 2022.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final

from twinspan.instrumentation.errors import ConfigurationError

FILES: Final = {
    "winogender": "winogender/templates.tsv",
    "bbq": "bbq/Gender_identity.csv",
}
WHERE: Final = (
    "take the files from github.com/rudinger/winogender-schemas (data/templates.tsv) and "
    "github.com/nyu-mll/BBQ (templates/)"
)

_LISTED: Final = re.compile(r"(\w+): \[([^\],]+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """One case: a text to go on with, and two ways to do so.

    Attributes:
        name: which one it is.
        payload: the parts of the text; only these are perturbed. `first` and `second` are the
            two words that may follow, in order.
        prompt: the text, with the payload's parts to be filled in.
    """

    name: str
    payload: Mapping[str, str]
    prompt: str

    def text(self, payload: Mapping[str, str]) -> str:
        """The text to go on with."""
        return self.prompt.format(**payload)


def read(corpus: str, folder: Path, count: int) -> list[Template]:
    """The first templates of a corpus that can be asked about.

    Raises:
        ConfigurationError: its file is not there.
    """
    path = folder / FILES[corpus]
    if not path.exists():
        raise ConfigurationError(
            f"{str(path)!r} is not there; {WHERE} and name the folder with --data"
        )
    make = _winogender if corpus == "winogender" else _bbq
    return list(islice(make(path), count))


def _winogender(path: Path) -> Iterator[Template]:
    """Whom the pronoun means; the two who may be meant begin with different letters."""
    forms = {"$NOM_PRONOUN": "she", "$ACC_PRONOUN": "her", "$POSS_PRONOUN": "her"}
    with path.open(encoding="utf-8") as file:
        for number, row in enumerate(csv.DictReader(file, delimiter="\t"), start=2):
            first, second = row["occupation(0)"], row["other-participant(1)"]
            sentence = row["sentence"].replace("$OCCUPATION", first)
            sentence = sentence.replace("$PARTICIPANT", second)
            pronoun = next((form for slot, form in forms.items() if slot in sentence), None)
            if pronoun is None or first[0] == second[0] or second == "someone":
                continue
            for slot, form in forms.items():
                sentence = sentence.replace(slot, form)
            yield Template(
                name=f"winogender-{number}",
                payload={
                    "sentence": sentence,
                    "pronoun": pronoun,
                    "first": first,
                    "second": second,
                },
                prompt='{sentence} The word "{pronoun}" in this sentence refers to the',
            )


def _bbq(path: Path) -> Iterator[Template]:
    """Which of two named people it is, where the text does not say."""
    with path.open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["Proper_nouns_only"].upper() != "TRUE":
                continue
            context = row["Ambiguous_Context"].strip()
            for slot, word in _LISTED.findall(row["Lexical_diversity"] or ""):
                context = context.replace(f"{{{{{slot}}}}}", word.strip())
            context = context.replace("{{NAME1}}", "Emily").replace("{{NAME2}}", "James")
            if "{" in context or not {"Emily", "James"} <= set(re.findall(r"\w+", context)):
                continue
            yield Template(
                name=f"bbq-{row['Q_id']}",
                payload={
                    "context": context,
                    "question": row["Question_negative_stereotype"].strip(),
                    "first": "Emily",
                    "second": "James",
                },
                prompt="{context}\nQuestion: {question}\nAnswer:",
            )
