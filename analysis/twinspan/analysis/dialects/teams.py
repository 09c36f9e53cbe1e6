"""What the traces of one team mean together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from twinspan.analysis.dialects.control_flow import outcome_of
from twinspan.analysis.dialects.foreign import Reading
from twinspan.analysis.dialects.langgraph_steps import Place
from twinspan.analysis.dialects.span_tree import DEEPEST, Told
from twinspan.analysis.dialects.steps import Origin, Source, Step
from twinspan.analysis.dialects.traced_calls import TracedCall
from twinspan.analysis.dialects.traces import Row, call_row, node_row


@dataclass(slots=True)
class _Turn:
    """One turn of an agent, and the turns whose messages it was asked for."""

    told: Told
    reading: Reading
    asked: int
    causes: list[_Turn] = field(default_factory=list["_Turn"])
    is_observed: bool = True
    layer: int = 1

    @property
    def task(self) -> str:
        return self.told.span.span_id


class TeamReading:
    """Reads the spans of all traces of one team.

    A turn follows the turn whose message had the manager ask for it: links lead there. A message
    after which the manager asked for nobody waits for others, and is read by the turn that is
    asked for next; which turn that is, is inferred.

    Args:
        told: the spans, in order of their beginning.
    """

    def __init__(self, told: Sequence[Told]) -> None:
        self._by_id = {each.span.span_id: each for each in told}
        self._starts = [each.span.start for each in told if each.reading and each.reading.starts]
        self._team = next(each.reading.team for each in told if each.reading and each.reading.team)
        self._turns = [
            _Turn(each, each.reading, asked=self._asked(each))
            for each in told
            if each.is_step and each.reading is not None
        ]
        self._by_task = {turn.task: turn for turn in self._turns}
        self._told = told
        self._connect()

    @property
    def ignored(self) -> Counter[tuple[str, str]]:
        """Nothing is left out: a team that others tell too is read as they tell it."""
        return Counter()

    def rows(self) -> Iterator[Row]:
        """A row for each turn, and for each call of a model within one."""
        counts: Counter[str] = Counter()
        for turn in self._turns:
            step = self._step(turn)
            origin = Origin(
                index=turn.layer,
                sources=tuple(_source(cause) for cause in turn.causes),
                kind="observed" if turn.is_observed else "inferred",
            )
            number, counts[step.run_id] = counts[step.run_id], counts[step.run_id] + 1
            yield node_row(step, origin) | {"audit_seq": number, "node_kind": "agent"}
        nodes = {turn.task: str(turn.reading.node) for turn in self._turns}
        for each in self._told:
            if each.reading is not None and each.reading.role == "llm":
                yield call_row(self._call(each, each.reading), nodes)

    # --- who followed whom --------------------------------------------------------------------

    def _above(self, told: Told) -> Iterator[Told]:
        """What led to a span: its parent, and where there is none what it links to."""
        for _ in range(DEEPEST):
            parent = self._by_id.get(told.span.parent_span_id or "")
            links = [self._by_id[link] for link in told.span.links if link in self._by_id]
            found = parent or next(iter(links), None)
            if found is None:
                return
            yield found
            told = found

    def _asked(self, told: Told) -> int:
        """When an agent was asked for its turn: its message was created."""
        created = (
            each for each in self._above(told) if each.span.name.startswith("autogen create")
        )
        return next((each.span.start for each in created), told.span.start)

    def _cause(self, told: Told) -> _Turn | None:
        return next(
            (
                self._by_task[each.span.span_id]
                for each in self._above(told)
                if each.span.span_id in self._by_task
            ),
            None,
        )

    def _connect(self) -> None:
        for turn in self._turns:
            cause = self._cause(turn.told)
            if cause is not None:
                turn.causes.append(cause)
        led_on = {cause.task for turn in self._turns for cause in turn.causes}
        for turn in self._turns:
            if turn.task not in led_on:
                self._let_wait(turn)
        for turn in self._turns:
            turn.layer = 1 + max((cause.layer for cause in turn.causes), default=0)

    def _let_wait(self, turn: _Turn) -> None:
        """Give a message that nobody was asked for to the next turn of the run."""
        ended, run = turn.told.span.end, self._run(turn)
        later = [each for each in self._turns if each.asked >= ended and self._run(each) == run]
        if later:
            reader = min(later, key=lambda each: each.asked)
            reader.causes.insert(0, turn)
            reader.is_observed = False

    # --- rows ---------------------------------------------------------------------------------

    def _run(self, turn: _Turn) -> str:
        """A team runs from one start to the next."""
        number = sum(1 for start in self._starts if start <= turn.told.span.start)
        return f"{self._team}-{number}"

    def _step(self, turn: _Turn) -> Step:
        outcome, error = outcome_of(turn.told.span)
        return Step(
            told=turn.told,
            reading=turn.reading,
            run_id=self._run(turn),
            place=Place(node=str(turn.reading.node), task=turn.task, scope=""),
            index=turn.layer,
            outcome=outcome,
            error=error,
        )

    def _call(self, told: Told, reading: Reading) -> TracedCall:
        turn = self._cause(told)
        return TracedCall(
            told=told,
            reading=reading,
            run_id=None if turn is None else self._run(turn),
            task_id=None if turn is None else turn.task,
            probe=None,
        )


def teams_of(readings: Mapping[str, set[str | None]]) -> dict[str, str]:
    """The team of each trace that belongs to one and to nobody else.

    Args:
        readings: teams found in each trace; None stands for a step that another dialect tells.

    >>> teams_of({"t1": {"a"}, "t2": {"a", "b"}, "t3": {"a", None}})
    {'t1': 'a'}
    """
    return {
        trace: team
        for trace, teams in readings.items()
        if len(teams) == 1
        for team in teams
        if team is not None
    }


def _source(turn: _Turn) -> Source:
    return Source(node=str(turn.reading.node), task=turn.task, output_hash=None)
