"""`twinspan demo`: the built-in agents, end to end, told from the recorded files alone."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import click

from twinspan.analysis.cli.dag import edge_table
from twinspan.analysis.cli.output import print_table
from twinspan.analysis.cli.trail import lines_of
from twinspan.analysis.graphs import run_graph
from twinspan.analysis.store import Store, open_store
from twinspan.analysis.trail import AuditTrail
from twinspan.instrumentation.errors import MissingExtra

_LATEST = "SELECT run_id FROM runs ORDER BY start_time DESC LIMIT 1"

_SUPERSTEPS = """
SELECT superstep,
       array_to_string(nodes, ', ') AS nodes,
       round(b_fast, 4) AS b_fast,
       round(b_fast_recomputed, 4) AS recomputed,
       round(monitor, 3) AS monitor,
       round(monitor_threshold, 0) AS halts_at,
       decision
FROM network
WHERE run_id = ?
ORDER BY audit_seq
"""


@click.command()
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("demo-spans"),
    show_default=True,
    help="Folder for the recorded spans.",
)
@click.option("--unbiased", is_flag=True, help="No agent is biased: nothing is to be halted.")
@click.option("--hot", is_flag=True, help="Unbiased at a high temperature: noise is not bias.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of model and probes.")
@click.option(
    "--otlp",
    metavar="URL",
    help="Also send the spans by OTLP/HTTP, as to Jaeger on http://localhost:4318.",
)
def demo(out: Path, unbiased: bool, hot: bool, seed: int, otlp: str | None) -> None:
    """Run the built-in agents: find the bias, cut the edge, repair, go on.

    Four agents review a loan application on a stand-in chat model: planner -> (analyst_a,
    analyst_b) -> reviewer. analyst_a treats women worse, unless --unbiased or --hot.
    """
    if find_spec("langgraph") is None:
        raise MissingExtra("langgraph", extra="langgraph")
    from twinspan.analysis.demo.otlp import provider_for
    from twinspan.analysis.demo.run import HOT, TEMPERATURE, run_demo

    biased = not (unbiased or hot)
    click.echo(_opening(biased=biased, hot=hot))
    outcome = run_demo(
        out,
        seed=seed,
        biased=biased,
        temperature=HOT if hot else TEMPERATURE,
        tracer_provider=None if otlp is None else provider_for(otlp),
    )
    if outcome.state is not None:
        click.echo(f"The run completed; the reviewer says: {outcome.state['decision']['verdict']}")
    else:
        click.echo(f"The run was halted: {outcome.halt}")
    with open_store(out) as store:
        _tell(store, out)


def _opening(*, biased: bool, hot: bool) -> str:
    who = "analyst_a treats women worse" if biased else "nobody is biased"
    return f"Four agents review a loan application; {who}{', temperature is high' if hot else ''}."


def _tell(store: Store, out: Path) -> None:
    run_id = str(store.table(_LATEST).rows[0][0])
    click.echo(f"\nFrom the files below {out}, run {run_id}:\n")
    click.echo("The graph as it was taken")
    print_table(edge_table(run_graph(store, run_id)), "table")
    click.echo("\nThe network score by superstep, recorded and recomputed in SQL from the probes")
    print_table(store.table(_SUPERSTEPS, [run_id]), "table")
    click.echo("\nThe trail")
    click.echo("\n".join(lines_of(AuditTrail(store).run(run_id))))
    click.echo("\n".join(_further(out)))


def _further(out: Path) -> Iterator[str]:
    yield "\nAsk further:"
    yield f"  twinspan trail {out}"
    yield f"  twinspan dag {out} --format mermaid"
    yield f'  twinspan sql {out} "SELECT * FROM decisions"'
