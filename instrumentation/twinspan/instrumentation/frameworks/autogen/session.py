"""One run of a team: its place, who has said what, and the halt that must reach the caller."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Any

from autogen_agentchat.base import Response
from wrapt import ObjectProxy

from twinspan.instrumentation.errors import BiasHalt
from twinspan.instrumentation.frameworks.autogen.copies import isolated, respond
from twinspan.instrumentation.frameworks.autogen.revised import remember, revised
from twinspan.instrumentation.frameworks.place import Place, flow_of, is_unobserved
from twinspan.instrumentation.frameworks.stepwise import Step, Targets
from twinspan.instrumentation.run import Parent


def answer_of(response: Any) -> Any:
    """What an agent said, and whom it hands off to."""
    message = response.chat_message
    target = getattr(message, "target", None)
    content = message.content
    return content if target is None else {"handoff": target, "content": content}


class Session:
    """The agents of one team's run.

    Args:
        place: where the run takes place.
        names: the participants, in the team's order.
    """

    def __init__(self, place: Place, names: Sequence[str]) -> None:
        self.place = place
        self.halt: BiasHalt | None = None
        self._names = tuple(names)
        self._said: dict[str, Parent] = {}

    def begin(self, agent: Any, messages: Sequence[Any], kept: dict[int, Any]) -> Step | None:
        """The step of an agent that is asked to speak."""
        frozen = isolated(agent)

        async def rerun(payload: Any) -> Any:
            twin = isolated(frozen)
            response = await respond(twin, payload)
            answer = answer_of(response)
            kept[id(answer)] = (answer, response, twin)
            return answer

        return Step.begin(
            self.place,
            str(agent.name),
            list(messages),
            parents=self._parents(messages),
            rerun=rerun,
            in_loop=True,
        )

    def _parents(self, messages: Sequence[Any]) -> tuple[Parent, ...]:
        found = (self._said.get(str(message.id)) for message in messages)
        seen = {parent.task_id: parent for parent in found if parent is not None}
        given, _ = flow_of(self.place.run).handed.parents_of(list(messages))
        return tuple({**{parent.task_id: parent for parent in given}, **seen}.values())

    def readers(self, agent: str, response: Any) -> Targets:
        """Everybody else reads what is published; whoever speaks next comes first."""
        target = getattr(response.chat_message, "target", None)
        place = self._names.index(agent) + 1 if agent in self._names else 0
        others = [*self._names[place:], *self._names[: max(place - 1, 0)]]
        drawn = [b for a, b in self.place.run.topology.edges if a == self.place.name(agent)]
        first = [target] if target in self._names else [n for n in others if n in drawn]
        return tuple(self.place.name(each) for each in dict.fromkeys([*first, *others]))

    def said(self, step: Step, response: Any) -> None:
        """A message goes out; whoever reads it reads this step."""
        if step.handed is not None:
            self._said[str(response.chat_message.id)] = step.handed
            step.note_handed(answer_of(response), response.chat_message)


class Alone(Session):
    """An agent that runs without a team.

    Args:
        place: where it runs.
        agent: the agent.
        is_root: whether the run is its own, so that nobody in the run reads its answer.
    """

    def __init__(self, place: Place, agent: Any, *, is_root: bool) -> None:
        super().__init__(place, [str(agent.name)])
        self._is_root = is_root

    def readers(self, agent: str, response: Any) -> Targets:
        """Nobody, or whom the graph around it knows."""
        return () if self._is_root else None


class ObservedAgent(ObjectProxy):  # type: ignore[type-arg]
    """How others see an agent: its response is decided before they have it."""

    def __init__(self, agent: Any, session: Session) -> None:
        super().__init__(agent)  # pyright: ignore[reportUnknownMemberType]
        self._self_agent = agent
        self._self_session = session

    async def on_messages_stream(
        self, messages: Sequence[Any], cancellation_token: Any
    ) -> AsyncGenerator[Any]:
        """What the agent does, and its response or the one that replaces it."""
        agent, session = self._self_agent, self._self_session
        kept: dict[int, Any] = {}
        step = None if is_unobserved() else session.begin(agent, messages, kept)
        events = agent.on_messages_stream(messages, cancellation_token)
        if step is None:
            async for event in events:
                yield event
            return
        holds = step.run.engine.holds_stream
        held: list[Any] = []
        try:
            while (event := await _next(events, step)) is not None:
                if isinstance(event, Response):
                    decided = await self._decided(step, event, kept)
                    held = [] if decided is not event else held
                    event = decided
                held.append(event)
                if not holds or isinstance(event, Response):
                    for each in held:
                        yield each
                    held = []
        finally:
            await events.aclose()

    async def on_messages(self, messages: Sequence[Any], cancellation_token: Any) -> Any:
        """The response alone, decided."""
        found: Any = None
        async for event in self.on_messages_stream(messages, cancellation_token):
            found = event if isinstance(event, Response) else found
        if found is None:
            raise RuntimeError("the agent gave no response")
        return found

    async def _decided(self, step: Step, response: Any, kept: dict[int, Any]) -> Any:
        agent, session = self._self_agent, self._self_session
        answer = answer_of(response)
        try:
            handed = await step.aclose(answer, targets=session.readers(agent.name, response))
        except BiasHalt as halt:
            # The team turns every exception of an agent into text; the caller gets this one.
            session.halt = halt
            raise
        if handed is not answer:
            response = await self._replaced(response, handed, kept)
        session.said(step, response)
        return response

    async def _replaced(self, response: Any, handed: Any, kept: dict[int, Any]) -> Any:
        """The response that is handed on; the frozen answer must not be remembered either."""
        agent = self._self_agent
        if id(handed) in kept:
            _, response, twin = kept[id(handed)]
            await agent.load_state(await twin.save_state())
            return response
        frozen, response = response, revised(response, handed)
        await remember(agent, frozen.chat_message.content, response.chat_message.content)
        return response


async def _next(events: Any, step: Step) -> Any:
    """A stream's next event, read with the node's span current; None at the end."""
    with step.running():
        return await anext(events, None)
