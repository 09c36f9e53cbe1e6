"""`twinspan verify` asks whether the record gives the numbers that it states."""

from __future__ import annotations

from dataclasses import asdict

import click

from twinspan.analysis.cli.output import format_option, print_json, print_table, tell_problems
from twinspan.analysis.store import open_store
from twinspan.analysis.tables import Table
from twinspan.analysis.verify import Verification
from twinspan.analysis.verify import verify as verify_store

FINDING = 1


@click.command()
@click.argument("spans", type=click.Path())
@click.option("--run", "run_id", metavar="ID", help="One run; all of them if unset.")
@format_option()
def verify(spans: str, run_id: str | None, form: str) -> int:
    """Recompute scores, weights, network score, monitor, decisions and hash chain of SPANS.

    Each run is verified, incomplete (spans are missing) or mismatch (a number does not follow
    from the raw spans, or a decision was altered or removed); the span is named. Ends with 1 if
    a run is not verified.
    """
    with open_store(spans) as store:
        tell_problems(store)
        found = verify_store(store, run_id)
    if form == "json":
        print_json([asdict(each) for each in found])
    else:
        print_table(_table(found), form)
    return 0 if all(each.verdict == "verified" for each in found) else FINDING


def _table(found: list[Verification]) -> Table:
    """One row a mismatch or reason; one row for a run without any."""
    rows: list[tuple[object, ...]] = []
    for each in found:
        head = (each.run_id, each.verdict, each.checked)
        told = [(m.span_id, m.what, m.recorded, m.recomputed) for m in each.mismatches]
        told += [("", reason, "", "") for reason in (*each.reasons, *each.notes)]
        rows += [(*head, *item) for item in told or [("", "", "", "")]]
    columns = ("run_id", "verdict", "checked", "span_id", "what", "recorded", "recomputed")
    return Table(columns=columns, rows=tuple(rows))
