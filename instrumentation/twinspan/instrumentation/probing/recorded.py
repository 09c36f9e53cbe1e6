"""A probe that writes its spans into the run whose execution it probes."""

from __future__ import annotations

from twinspan.instrumentation.hashing import PayloadHasher
from twinspan.instrumentation.probing.budget import RunBudget
from twinspan.instrumentation.probing.guard import ProbeFrame
from twinspan.instrumentation.probing.observation import ProbedNode, SetObserver
from twinspan.instrumentation.probing.probe import LOOCProbe
from twinspan.instrumentation.probing.setup import Node
from twinspan.instrumentation.settings import ProbeOptions
from twinspan.instrumentation.tracing import RunTracer


def recorded_probe(
    rerun: Node,
    probed: ProbedNode,
    *,
    run: RunTracer,
    hasher: PayloadHasher,
    options: ProbeOptions,
    capture_content: bool,
    budget: RunBudget | None = None,
) -> LOOCProbe:
    """A probe of one execution of a run.

    Args:
        rerun: runs the node, or the procedure that replaces it, on a payload.
        probed: the execution, as its spans name it.
        run: the run that the spans belong to.
        hasher: the run's hasher, so that equal payloads of a run have equal hashes.
        options: axes, sample counts or plan, wording, estimator, limits.
        capture_content: whether the spans may carry what was read and answered.
        budget: node runs that may be spent; a budget of the probe's own if None.

    Raises:
        ConfigurationError: if `options` names no axis.
    """
    return LOOCProbe(
        rerun,
        options=options,
        budget=budget,
        frame=ProbeFrame(
            run_id=run.run_id,
            node=probed.node,
            task_id=probed.task_id,
            arm="",
            superstep=probed.superstep,
            repeat=probed.repeat,
            call=probed.call,
            safe_tools=options.safe_tools,
        ),
        observer=lambda: SetObserver(run, probed, hasher, capture_content=capture_content),
    )
