"""The steps of one trace: each execution told once, in its place, with what it read from."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from twinspan.analysis.dialects.control_flow import outcome_of
from twinspan.analysis.dialects.foreign import Reading, rank_of
from twinspan.analysis.dialects.graph_runs import GraphRuns
from twinspan.analysis.dialects.langgraph_steps import Execution, Place, ScopeSteps, place_of
from twinspan.analysis.dialects.sequences import Placed, Turn, placed
from twinspan.analysis.dialects.span_tree import SpanTree, Told


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """What an execution read from: a node, its execution and what that handed on."""

    node: str
    task: str | None
    output_hash: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One attempt of an execution, in its run and scope."""

    told: Told
    reading: Reading
    run_id: str
    place: Place
    index: int | None
    outcome: str
    error: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where an execution stands in the order of its graph."""

    index: int | None
    sources: tuple[Source, ...] = ()
    kind: str | None = None


class Steps:
    """All steps of a trace.

    Args:
        tree: the trace.
        runs: its runs.

    Attributes:
        kept: the steps that count, in order of their beginning.
        ignored: how many of a dialect were left out for another's, as (dialect, other).
        static: the declared edges of each graph, by run and scope.
    """

    def __init__(self, tree: SpanTree, runs: GraphRuns) -> None:
        self._tree = tree
        self._runs = runs
        self.ignored: Counter[tuple[str, str]] = Counter()
        outer = [each for each in tree.told if each.is_step and not tree.repeats(each)]
        self.kept = self._choose([self._step(each) for each in outer])
        self._tasks = {step.place.task for step in self.kept}
        self.static: defaultdict[tuple[str, str], dict[tuple[str, str], None]] = defaultdict(dict)
        self._targets: defaultdict[str, set[str]] = defaultdict(set)
        for told in tree.told:
            self._note(told)

    def task_of(self, told: Told) -> str | None:
        """The execution that a span belongs to."""
        if told.reading is not None and told.reading.namespace is not None:
            return place_of(told.reading.namespace).task
        above = self._tree.step_above(told)
        if above is None or above.reading is None:
            return None
        # A step that was left out for another dialect's is no place: the other one is.
        task = self._place(above, above.reading).task
        return task if task in self._tasks else None

    def origins(self) -> Mapping[tuple[str, str], Origin]:
        """Where each execution stands, by run and task."""
        by_scope: defaultdict[tuple[str, str], list[Step]] = defaultdict(list)
        for step in self.kept:
            by_scope[step.run_id, step.place.scope].append(step)
        found: dict[tuple[str, str], Origin] = {}
        for (run_id, scope), steps in by_scope.items():
            found |= self._langgraph(run_id, scope, [s for s in steps if not s.reading.sequential])
            found |= _sequence(run_id, [s for s in steps if s.reading.sequential])
        return found

    def _step(self, told: Told) -> Step:
        reading = told.reading or Reading(dialect="GenAI")
        outcome, error = outcome_of(told.span)
        return Step(
            told=told,
            reading=reading,
            run_id=self._runs.run_id(told),
            place=self._place(told, reading),
            index=reading.step,
            outcome=outcome,
            error=error,
        )

    def _place(self, told: Told, reading: Reading) -> Place:
        if reading.namespace is not None:
            return place_of(reading.namespace)
        names = [reading.node or told.span.name]
        scope: str | None = None
        for each in self._tree.above(told):
            holder = each.reading
            if holder is None or not each.is_step or rank_of(holder) != rank_of(reading):
                continue
            if holder.namespace is not None:
                above = place_of(holder.namespace)
                names.append(above.node)
                scope = above.task if scope is None else scope
                break
            names.append(holder.node or each.span.name)
            scope = each.span.span_id if scope is None else scope
        return Place(node="/".join(reversed(names)), task=told.span.span_id, scope=scope or "")

    def _choose(self, steps: Sequence[Step]) -> list[Step]:
        """The steps of one dialect in each scope."""
        best: dict[tuple[str, str], Reading] = {}
        for step in steps:
            key = _competes_in(step)
            if key not in best or rank_of(step.reading) < rank_of(best[key]):
                best[key] = step.reading
        kept: list[Step] = []
        for step in steps:
            believed = best[_competes_in(step)]
            if rank_of(believed) == rank_of(step.reading):
                kept.append(step)
            else:
                self.ignored[step.reading.dialect, believed.dialect] += 1
        return sorted(kept, key=lambda step: (step.told.span.start, step.told.span.span_id))

    def _note(self, told: Told) -> None:
        """Keep what a span says of the ways between nodes."""
        reading = told.reading
        if reading is None:
            return
        task = self.task_of(told) if reading.targets or reading.edges else None
        if reading.targets and task is not None:
            self._targets[task] |= reading.targets
        if reading.edges:
            self.static[self._runs.run_id(told), task or ""].update(dict.fromkeys(reading.edges))

    def _langgraph(
        self, run_id: str, scope: str, steps: Sequence[Step]
    ) -> dict[tuple[str, str], Origin]:
        executions = {
            task: _execution(attempts, self._targets.get(task, ()))
            for task, attempts in _by_task(steps).items()
        }
        known = {task: each for task, each in executions.items() if each is not None}
        ordered = ScopeSteps(list(known.values()), self.static.get((run_id, scope), {}).keys())
        found: dict[tuple[str, str], Origin] = {}
        for task, execution in executions.items():
            if execution is None:
                found[run_id, task] = Origin(index=None)
                continue
            sources, kind = ordered.sources(execution)
            found[run_id, task] = Origin(
                index=execution.step,
                sources=tuple(
                    Source(node=each.place.node, task=each.place.task, output_hash=each.output_hash)
                    for each in sources
                ),
                kind=kind,
            )
        return found


def _competes_in(step: Step) -> tuple[str, str]:
    """Run and graph of which one dialect is believed.

    The GenAI spans of agents do not say in which subgraph they are, so that any other dialect's
    steps of the run tell the same.
    """
    tells_no_place = step.reading.sequential and step.reading.source is None
    return (step.run_id, "" if tells_no_place else step.place.scope)


def _by_task(steps: Iterable[Step]) -> dict[str, list[Step]]:
    found: dict[str, list[Step]] = {}
    for step in steps:
        found.setdefault(step.place.task, []).append(step)
    return found


def _execution(attempts: Sequence[Step], targets: Iterable[str]) -> Execution | None:
    """Attempts as one execution; None where no superstep is told."""
    index = next((each.index for each in attempts if each.index is not None), None)
    if index is None:
        return None
    outputs = [each.reading.output for each in attempts if each.outcome == "ok"]
    return Execution(
        place=attempts[0].place,
        step=index,
        triggers=attempts[0].reading.triggers,
        finished=bool(outputs),
        targets=frozenset(targets),
        output_hash=outputs[-1].hash if outputs and outputs[-1] else None,
    )


def _sequence(run_id: str, steps: Sequence[Step]) -> dict[tuple[str, str], Origin]:
    by_task = {step.place.task: step for step in steps}
    turns = [
        Turn(
            task=task,
            node=step.place.node.rpartition("/")[2],
            start=step.told.span.start,
            end=step.told.span.end,
            source=step.reading.source,
        )
        for task, step in by_task.items()
    ]
    return {
        (run_id, each.turn.task): Origin(
            index=each.layer, sources=_turn_sources(each, by_task), kind=each.kind
        )
        for each in placed(turns)
    }


def _turn_sources(each: Placed, by_task: Mapping[str, Step]) -> tuple[Source, ...]:
    if each.missing is not None:
        return (Source(node=each.missing, task=None, output_hash=None),)
    found: list[Source] = []
    for turn in each.sources:
        step = by_task[turn.task]
        output = step.reading.output
        found.append(
            Source(
                node=step.place.node, task=turn.task, output_hash=output.hash if output else None
            )
        )
    return tuple(found)
