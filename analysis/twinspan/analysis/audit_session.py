"""One session of `twinspan audit`: what is done already, the runner, the record, the verdict."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from twinspan.analysis.flip_judgement import read_judgement
from twinspan.analysis.flips import flip_report
from twinspan.analysis.store import open_store
from twinspan.collector.batch_recorder import BatchRecorder
from twinspan.instrumentation.audit.configuration import AuditConfiguration
from twinspan.instrumentation.audit.execution import Executed
from twinspan.instrumentation.audit.plan import Cell
from twinspan.instrumentation.audit.runner import AuditRunner, AuditSummary
from twinspan.instrumentation.errors import ConfigurationError, NoSpans
from twinspan.instrumentation.tracing import Telemetry

CHARACTERS_PER_TOKEN: Final = 4
"""What English text has about; an estimate of cost needs no more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """What a folder holds of an audit.

    Attributes:
        audit_id: the audit; None if there is none.
        done: runs that need not be made again.
    """

    audit_id: str | None = None
    done: frozenset[Cell] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What an audit will take, before it begins.

    Attributes:
        runs: runs of the plan.
        runs_left: those that are not recorded yet.
        calls: calls of the agent for these, retries aside.
        input_tokens: tokens of their prompts, roughly.
        output_tokens: tokens of their answers, roughly.
        cost: in the currency of the prices; None if none were given.
    """

    runs: int
    runs_left: int
    calls: int
    input_tokens: int
    output_tokens: int
    cost: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditOutcome:
    """What came of a session.

    Attributes:
        summary: runs, calls and failures.
        verdict: ``flagged``, ``clear``, ``inconclusive``, or ``incomplete``.
    """

    summary: AuditSummary
    verdict: str


def recorded(configuration: AuditConfiguration, folder: Path) -> Recorded:
    """What a folder holds of this audit.

    A run is done if it completed, or if the agent's answers did not fit, which is its result.
    One that an error of the agent ended is made again.

    Raises:
        ConfigurationError: the folder holds an audit of another plan.
    """
    if not folder.exists():
        return Recorded()
    try:
        with open_store(folder) as store:
            plans = store.table(
                "SELECT audit_id, any_value(audit_plan_hash) FROM spans "
                "WHERE audit_plan_hash IS NOT NULL GROUP BY audit_id ORDER BY min(start_unix_nano)"
            ).rows
            runs = store.table(
                "SELECT audit_id, case_id, condition_id, run_arm, replicate_index FROM roots "
                "WHERE run_outcome = 'completed' OR (run_outcome = 'failed' AND error_type IS NULL)"
            ).rows
    except NoSpans:
        return Recorded()
    ours = [str(audit) for audit, plan in plans if plan == configuration.plan.hash]
    if plans and not ours:
        raise ConfigurationError(
            f"{str(folder)!r} holds an audit of another plan ({str(plans[0][1])[:12]}..., this is "
            f"{configuration.plan.hash[:12]}...); name another folder with --out"
        )
    if not ours:
        return Recorded()
    done = {
        (str(case), str(condition), None if arm is None else str(arm), int(str(replicate)))
        for audit, case, condition, arm, replicate in runs
        if audit == ours[0] and replicate is not None
    }
    return Recorded(audit_id=ours[0], done=frozenset(done))


def estimate(configuration: AuditConfiguration, folder: Path) -> Estimate:
    """What is left to do, and what it costs.

    Raises:
        ConfigurationError: the folder holds an audit of another plan.
    """
    plan, protocol = configuration.plan, configuration.protocol
    done = recorded(configuration, folder).done
    left = [run for run in plan.runs() if run.cell not in done]
    cases = {case.id: case for case in plan.cases}
    calls = characters = 0
    for run in left:
        case = cases[run.case_id]
        if not configuration.asks_steps:
            calls += 1
            characters += len(protocol.form.text(case, run.text))
            continue
        forced = plan.arms.get(run.arm or "", {})
        for step in plan.steps:
            if step.asks_model and step.name not in forced:
                calls += 1
                characters += len(protocol.form.write(step, case, run.text, []))
    tokens_in, tokens_out = (
        characters // CHARACTERS_PER_TOKEN,
        calls * configuration.prices.answer_tokens,
    )
    prices = configuration.prices
    priced = prices.input > 0 or prices.output > 0
    return Estimate(
        runs=len(plan.runs()),
        runs_left=len(left),
        calls=calls,
        input_tokens=tokens_in,
        output_tokens=tokens_out,
        cost=(tokens_in * prices.input + tokens_out * prices.output) / 1e6 if priced else None,
    )


def run_audit(
    configuration: AuditConfiguration,
    folder: Path,
    *,
    concurrency: int | None = None,
    on_run: Callable[[Executed], None] | None = None,
) -> AuditOutcome:
    """Make what is left of an audit, and record it.

    Raises:
        ConfigurationError: the agent cannot be made, or the folder holds another plan.
        AuditStopped: the agent failed too many runs in a row; what ended is recorded.
        RecordError: the folder cannot be written.
    """
    there = recorded(configuration, folder)
    planned = len(configuration.plan.runs())
    if there.audit_id is not None and len(there.done) == planned:
        summary = AuditSummary.nothing_left(there.audit_id, planned)
        return AuditOutcome(summary=summary, verdict=_verdict(configuration, folder, summary))
    agent = configuration.make_agent()
    recorder = BatchRecorder(folder)
    telemetry = Telemetry([recorder])
    try:
        runner = AuditRunner(
            configuration.plan,
            agent,
            telemetry=telemetry,
            protocol=configuration.protocol,
            concurrency=concurrency or configuration.concurrency,
            max_failures=configuration.max_failures,
            audit_id=there.audit_id,
        )
        try:
            summary = runner.run(there.done, on_run)
        except BaseException:
            recorder.flush()
            runner.close("incomplete", observed=len(there.done), status="aborted")
            raise
        recorder.flush()
        verdict = _verdict(configuration, folder, summary)
        runner.close(
            verdict,
            observed=summary.already + summary.completed + summary.failed,
            status="failure" if verdict == "flagged" else "success",
        )
    finally:
        telemetry.shutdown()
    return AuditOutcome(summary=summary, verdict=verdict)


def _verdict(configuration: AuditConfiguration, folder: Path, summary: AuditSummary) -> str:
    if not summary.is_whole:
        return "incomplete"
    judgement = read_judgement(configuration.file)
    with open_store(folder) as store:
        found = flip_report(
            store,
            alpha=configuration.analysis.alpha,
            judgement=judgement,
            procedure=configuration.analysis.adjust,
        )
    return found.verdict
