"""`twinspan jaeger`: recorded spans into Jaeger."""

from __future__ import annotations

import click

from twinspan.analysis.cli.output import tell_problems
from twinspan.analysis.cli.progress import counted_spans
from twinspan.analysis.jaeger import DEFAULT_ENDPOINT, send_spans
from twinspan.analysis.store import open_store


@click.command()
@click.argument("spans", type=click.Path())
@click.option(
    "--endpoint",
    metavar="URL",
    default=DEFAULT_ENDPOINT,
    show_default=True,
    help="Where Jaeger, or any OTLP/HTTP receiver, listens.",
)
@click.option("--run", "run_id", metavar="ID", help="One run; all of SPANS if unset.")
def jaeger(spans: str, endpoint: str, run_id: str | None) -> None:
    """Send the recorded SPANS to Jaeger by OTLP.

    A cut superstep is marked red, a passed check green; tags that a reader looks for come first,
    and what a link says is repeated as a tag. Sending a run twice shows its spans twice.
    """
    with open_store(spans) as store, counted_spans("sent") as (tell,):
        tell_problems(store)
        sent = send_spans(store, endpoint, run_id=run_id, progress=tell)
    click.echo(f"sent {sent.spans} spans in {_counted(len(sent.traces))} to {endpoint}")
    if len(sent.traces) == 1:
        click.echo(f"find it in Jaeger by its trace id: {sent.traces[0]}")


def _counted(traces: int) -> str:
    return "1 trace" if traces == 1 else f"{traces} traces"
