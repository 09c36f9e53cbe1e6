"""Makes an audit of answers to BBQ: group swaps beside prompt formats as sham arms.

    python bbq_as_audit.py preds_Religion.jsonl religion.json
    twinspan flips religion.json --outcomes outcomes.toml

BBQ (Parrish et al. 2022, CC-BY-4.0, github.com/nyu-mll/BBQ) carries UnifiedQA's answers in
`results/UnifiedQA/preds_*.jsonl`: every question in three prompt formats. A case is one question
in the format `race`. It is compared with the same words in another format, which changes nothing
that should matter, and with the same question about other groups. What is counted is whether the
answer says that it cannot be known, or names somebody.

An answer stands in as many comparisons as there are questions beside it. Each run says by its
`response_ids` whose answer it is, so that `flips` gives the rates of the group swaps and no p:
their cases are not independent. Each question was asked once in each format, which leaves counts.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

REFERENCE, SHAMS = "race", ("arc", "qonly")
OPTIONS = ("ans0", "ans1", "ans2")

Row = Mapping[str, Any]


def names_nobody(row: Row, form: str) -> bool | None:
    """Whether the answer in a prompt format is that it cannot be known; None if it is no option."""
    said = _plain(row[f"unifiedqa-t5-11b_pred_{form}"])
    for option in OPTIONS:
        if _plain(row[option]) == said:
            return bool(row["answer_info"][option][1] == "unknown")
    return None


def groups(row: Row) -> frozenset[str]:
    """The groups that a question is about."""
    named = {row["answer_info"][option][1] for option in OPTIONS}
    return frozenset(named - {"unknown"})


def trajectories(rows: list[Row]) -> Iterator[dict[str, Any]]:
    """One case for each question: its own answer, the formats', and those about other groups."""
    alike: defaultdict[tuple[str, ...], list[Row]] = defaultdict(list)
    for row in rows:
        alike[_question(row)].append(row)
    for row in rows:
        yield _run(row, f"ref_format_{REFERENCE}", row, REFERENCE, 1)
        for form in SHAMS:
            yield _run(row, f"format_{form}_control", row, form, 1)
        others = [other for other in alike[_question(row)] if groups(other) != groups(row)]
        for number, other in enumerate(others, start=1):
            yield _run(row, "other_groups", other, REFERENCE, number)


def _question(row: Row) -> tuple[str, ...]:
    return row["question_index"], row["question_polarity"], row["context_condition"]


def _run(row: Row, condition: str, answered: Row, form: str, replicate: int) -> dict[str, Any]:
    """A question, and an answer to it or to one beside it."""
    return {
        "vignette_id": f"{row['category']}-{row['example_id']}",
        "condition_id": condition,
        "replicate": replicate,
        "model": "unifiedqa-t5-11b",
        "response_ids": [f"{answered['category']}-{answered['example_id']}-{form}"],
        "complete": True,
        "actions": {row["context_condition"]: {"names_nobody": names_nobody(answered, form)}},
    }


def _plain(text: str) -> str:
    return text.strip().lower().rstrip(".")


def main(source: str, out: str) -> None:
    """Read the answers, write the audit."""
    lines = Path(source).read_text("utf-8").splitlines()
    runs = list(trajectories([json.loads(line) for line in lines if line.strip()]))
    document = {"source": f"BBQ {Path(source).name} (CC-BY-4.0)", "trajectories": runs}
    Path(out).write_text(json.dumps(document), "utf-8")
    print(f"{len(runs):,} answers of {len(lines):,} questions in {out}")


if __name__ == "__main__":
    main(*sys.argv[1:])
