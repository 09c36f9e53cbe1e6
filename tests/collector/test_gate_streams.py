"""What a node streams while it runs is shown once it is decided, and never if it was stopped."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, TypedDict

import pytest
from biased_graph import GENDER, TEXT, State, gate, says
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage
from langgraph.config import get_stream_writer
from langgraph.func import entrypoint, task
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.pregel import Pregel, main
from sample_agents import Spans, instrumented

from twinspan.instrumentation.errors import BiasHalt

OPTIONS: Any = {"axes": [GENDER], "nodes": ["*speaker"], "estimator": "category"}
MODES = ["messages", "custom", "values", "updates"]


def answer_to(text: str, *, biased: bool) -> str:
    return "decline" if biased and says(text, "she") else "approve"


def model_of(answer: str) -> FakeListChatModel:
    return FakeListChatModel(responses=[answer])


def speaking(*, biased: bool, in_loop: bool) -> Any:
    """A node that streams its model's tokens, and remarks of its own."""

    def remark(answer: str) -> None:
        get_stream_writer()({"remark": f"about to {answer}"})

    def speak(state: Any) -> State:
        answer = answer_to(state["text"], biased=biased)
        remark(answer)
        return {"a": str(model_of(answer).invoke(state["text"]).content)}

    async def aspeak(state: Any) -> State:
        answer = answer_to(state["text"], biased=biased)
        remark(answer)
        return {"a": str((await model_of(answer).ainvoke(state["text"])).content)}

    return aspeak if in_loop else speak


def other(state: Any) -> State:
    """A node beside it that streams too."""
    get_stream_writer()({"remark": "nothing to say"})
    return {"b": "noted"}


def flat(*, biased: bool, in_loop: bool) -> Any:
    graph: Any = StateGraph(State)
    graph.add_node("speaker", speaking(biased=biased, in_loop=in_loop))
    graph.add_node("other", other)
    graph.add_node("reviewer", lambda s: {"verdict": s["a"]})
    graph.add_edge(START, "speaker")
    graph.add_edge(START, "other")
    graph.add_edge(["speaker", "other"], "reviewer")
    graph.add_edge("reviewer", END)
    return graph.compile(name="flat")


def inner(*, biased: bool, in_loop: bool) -> Any:
    graph: Any = StateGraph(State)
    graph.add_node("speaker", speaking(biased=biased, in_loop=in_loop))
    graph.add_edge(START, "speaker")
    graph.add_edge("speaker", END)
    return graph.compile(name="inner")


def reviewed(name: str, node: Any) -> Any:
    """A node with a reviewer behind it."""
    graph: Any = StateGraph(State)
    graph.add_node(name, node)
    graph.add_node("reviewer", lambda s: {"verdict": s["a"]})
    graph.add_edge(START, name)
    graph.add_edge(name, "reviewer")
    graph.add_edge("reviewer", END)
    return graph.compile(name="outer")


def within(*, biased: bool, in_loop: bool) -> Any:
    """The speaker in a subgraph that is a node, with a reviewer behind it."""
    return reviewed("team", inner(biased=biased, in_loop=in_loop))


def called_within(*, biased: bool, in_loop: bool) -> Any:
    """A node that calls a graph and reads its answer."""
    graph_inside = inner(biased=biased, in_loop=in_loop)

    def speaker(state: Any) -> State:
        return {"a": graph_inside.invoke({"text": state["text"]})["a"]}

    async def aspeaker(state: Any) -> State:
        return {"a": (await graph_inside.ainvoke({"text": state["text"]}))["a"]}

    return reviewed("speaker", aspeaker if in_loop else speaker)


def functional(*, biased: bool, in_loop: bool) -> Any:
    """Tasks that an entrypoint calls; plain ones have a thread each on a loop too."""

    def speaker(text: str) -> str:
        answer = answer_to(text, biased=biased)
        get_stream_writer()({"remark": f"about to {answer}"})
        return str(model_of(answer).invoke(text).content)

    called: Any = task(speaker)

    @entrypoint()
    def plain(state: Any) -> str:
        return str(called(state["text"]).result())

    @entrypoint()
    async def on_loop(state: Any) -> str:
        return str(await called(state["text"]))

    return on_loop if in_loop else plain


GRAPHS = [flat, within, called_within, functional]


def shown(
    graph: Any, mode: str | None, *, in_loop: bool, **options: Any
) -> tuple[list[Any], BaseException | None]:
    """The chunks that an application gets, and what ended them."""
    found: list[Any] = []
    how: Any = {"stream_mode": MODES, "subgraphs": True}

    async def listen() -> None:
        async for chunk in graph.astream({"text": TEXT}, **how):
            found.append(chunk)

    def read() -> None:
        if in_loop:
            asyncio.run(listen())
        else:
            found.extend(graph.stream({"text": TEXT}, **how))

    try:
        if mode is None:
            read()
        else:
            settings: Any = {**OPTIONS, **options, "mode": mode}
            with instrumented(gate(Spans(), **settings), **settings):
                read()
    except BiasHalt as halt:
        return found, halt
    return found, None


def told(chunks: list[Any]) -> list[str]:
    """Mode and content of each chunk, without the names that differ between runs."""
    return [f"{mode}: {content_of(mode, payload)}" for _, mode, payload in chunks]


def content_of(mode: str, payload: Any) -> Any:
    return payload[0].content if mode == "messages" else payload


@pytest.mark.parametrize("in_loop", [False, True])
@pytest.mark.parametrize("make", GRAPHS)
class TestStreams:
    """Of a graph, a graph in a graph, a graph called by a node, tasks called by an entrypoint."""

    def test_without_bias_everything_is_shown(self, make: Any, in_loop: bool) -> None:
        """All chunks of one node in their order; parallel nodes have none between them."""
        plain, _ = shown(make(biased=False, in_loop=in_loop), None, in_loop=in_loop)
        held, halt = shown(make(biased=False, in_loop=in_loop), "halt", in_loop=in_loop)
        assert halt is None
        assert sorted(told(held)) == sorted(told(plain))
        tokens = [each for each in told(plain) if each.startswith("messages")]
        assert [each for each in told(held) if each.startswith("messages")] == tokens
        assert len(tokens) >= len("approve")

    def test_of_a_stopped_answer_nothing_is_shown(self, make: Any, in_loop: bool) -> None:
        chunks, halt = shown(make(biased=True, in_loop=in_loop), "halt", in_loop=in_loop)
        assert isinstance(halt, BiasHalt)
        assert "decline" not in str(chunks)
        assert not [each for each in told(chunks) if each.startswith("messages")]

    def test_of_a_replaced_answer_nothing_is_shown(self, make: Any, in_loop: bool) -> None:
        """Only what was handed on in its place."""
        chunks, halt = shown(make(biased=True, in_loop=in_loop), "repair", in_loop=in_loop)
        assert halt is None
        assert "decline" not in str(chunks) and "approve" in str(chunks[-1])
        assert not [each for each in told(chunks) if each.startswith("messages")]
        remarks = [each for each in told(chunks) if each.startswith("custom")]
        assert remarks == (["custom: {'remark': 'nothing to say'}"] if make is flat else [])

    def test_shadow_mode_shows_all(self, make: Any, in_loop: bool) -> None:
        chunks, halt = shown(make(biased=True, in_loop=in_loop), "shadow", in_loop=in_loop)
        assert halt is None
        assert "custom: {'remark': 'about to decline'}" in told(chunks)

    def test_a_stream_that_passes_is_shown_at_once(self, make: Any, in_loop: bool) -> None:
        """As it is asked for; what is handed on is kept back all the same."""
        graph = make(biased=True, in_loop=in_loop)
        chunks, halt = shown(graph, "halt", in_loop=in_loop, stream="pass")
        assert isinstance(halt, BiasHalt)
        assert "custom: {'remark': 'about to decline'}" in told(chunks)


class Chat(TypedDict):
    """A conversation."""

    messages: Annotated[list[Any], add_messages]


@pytest.mark.parametrize("in_loop", [False, True])
def test_a_message_is_shown_in_the_place_of_the_one_it_replaces(in_loop: bool) -> None:
    """A reader of messages only, as a chat window is one, sees the repaired one."""

    def speak(state: Any) -> Any:
        text = str(state["messages"][0].content)
        model = model_of(answer_to(text, biased=True))
        return {"messages": [AIMessage(str(model.invoke(text).content), id="answer")]}

    graph: Any = StateGraph(Chat)
    graph.add_node("speaker", speak)
    graph.add_node("reviewer", lambda s: {"messages": []})
    graph.add_edge(START, "speaker")
    graph.add_edge("speaker", "reviewer")
    graph.add_edge("reviewer", END)
    compiled, found = graph.compile(), []
    question: Any = {"messages": [("human", TEXT)]}

    async def listen() -> None:
        async for chunk in compiled.astream(question, stream_mode="messages"):
            found.append(chunk)

    settings: Any = {**OPTIONS, "mode": "repair"}
    with instrumented(gate(Spans(), **settings), **settings):
        if in_loop:
            asyncio.run(listen())
        else:
            found.extend(compiled.stream(question, stream_mode="messages"))
    assert [message.content for message, _ in found] == ["approve"]
    assert found[0][1]["langgraph_node"] == "speaker"


@pytest.mark.filterwarnings("ignore:The v3 streaming protocol")
@pytest.mark.skipif(
    "astream_events" not in vars(Pregel), reason="this LangGraph has no third version of events"
)
def test_the_third_version_of_events_waits_too() -> None:
    """It is made of the stream."""

    async def listen(graph: Any, found: list[Any]) -> None:
        async for event in await graph.astream_events({"text": TEXT}, version="v3"):
            found.append(event)

    for mode, ends in (("halt", BiasHalt), ("repair", None)):
        found: list[Any] = []
        settings: Any = {**OPTIONS, "mode": mode}
        with instrumented(gate(Spans(), **settings), **settings):
            graph = flat(biased=True, in_loop=True)
            if ends is None:
                asyncio.run(listen(graph, found))
            else:
                with pytest.raises(ends):
                    asyncio.run(listen(graph, found))
        assert "decline" not in str(found)


def test_the_queues_are_langgraphs_own_again() -> None:
    names = ("SyncQueue", "AsyncQueue")
    before = [getattr(main, name) for name in names]
    with instrumented(gate(Spans(), **OPTIONS), **OPTIONS):
        assert not set(before) & {getattr(main, name) for name in names}
    assert [getattr(main, name) for name in names] == before
