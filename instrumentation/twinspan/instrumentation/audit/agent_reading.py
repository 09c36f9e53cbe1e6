"""Who is asked, as a configuration's table ``[agent]`` names it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, cast

from twinspan.instrumentation.audit.agents import RunAgent, StepAgent
from twinspan.instrumentation.audit.config_section import Section
from twinspan.instrumentation.audit.steps import Step
from twinspan.instrumentation.audit.targets import (
    SINGLE_STEP,
    ChatSteps,
    FunctionCase,
    FunctionSteps,
    GraphCase,
    HttpCase,
    HttpSteps,
    load_object,
    require_langgraph,
)

Agent = StepAgent | RunAgent

_TARGETS: Final = ("callable", "graph", "url", "chat")


def natural_form(agent: Section, steps: tuple[Step, ...]) -> str:
    """An agent with a loop of its own does cases; a model or a function is asked the steps."""
    return "case" if "graph" in agent or not steps else "step"


def read_agent(section: Section, asks: str) -> tuple[str, Callable[[], Agent]]:
    """What is audited in one word, and what makes the agent; nothing is imported before.

    Raises:
        ConfigurationError: nobody is named, or several are, or the form does not suit.
    """
    named = [name for name in _TARGETS if name in section]
    if len(named) != 1:
        raise section.error(
            f"[agent] names {', '.join(named) or 'nobody'}; give exactly one of "
            f"{', '.join(_TARGETS)}"
        )
    single = section.text("step", SINGLE_STEP)
    folder = section.file.parent
    make: Callable[[], Agent]
    if named[0] == "callable":
        place = section.text("callable")
        make = lambda: (  # noqa: E731
            FunctionSteps(load_object(place, folder))
            if asks == "step"
            else FunctionCase(load_object(place, folder), single)
        )
        return place, _placed(section, "callable", make)
    if named[0] == "graph":
        return _graph(section, asks, folder)
    if named[0] == "url":
        return _endpoint(section, asks, single)
    chat = section.section("chat")
    options = {key: chat.raw(key) for key in chat.values}
    if asks != "step":
        raise section.error("a chat model is asked step by step; write [[step]] tables", "chat")
    return f"chat {options.get('model') or ''}".strip(), _placed(
        section, "chat", lambda: ChatSteps(options, chat.values.get("system", ""))
    )


def _graph(section: Section, asks: str, folder: Path) -> tuple[str, Callable[[], Agent]]:
    place, template = section.text("graph"), section.mapping("input")
    config = section.mapping("config")
    if asks != "case":
        raise section.error(
            'a graph has a loop of its own; leave asks out, or make it "case"', "asks"
        )
    if not template:
        raise section.error(
            '[agent.input] is missing; say what the graph reads, like application = "{text}"'
        )

    def make() -> Agent:
        require_langgraph()
        return GraphCase(load_object(place, folder), template, config)

    return place, _placed(section, "graph", make)


def _endpoint(section: Section, asks: str, single: str) -> tuple[str, Callable[[], Agent]]:
    url = section.text("url")
    if not url.startswith(("http://", "https://")):
        raise section.error(f"url is {url!r}; give one that begins with http:// or https://", "url")
    headers = {str(name): str(value) for name, value in section.mapping("headers").items()}
    variable = section.optional_text("token_env")
    timeout = section.number("timeout", 60.0)
    template = section.mapping("input")

    def make() -> Agent:
        if variable is not None:
            token = os.environ.get(variable, "")
            if not token:
                raise section.error(f"the variable {variable} is not set; export it", "token_env")
            headers["authorization"] = f"Bearer {token}"
        if asks == "step":
            return HttpSteps(url, headers=headers, timeout=timeout)
        return HttpCase(url, headers=headers, timeout=timeout, template=template, single=single)

    return url.partition("?")[0], make


def _placed(section: Section, key: str, make: Callable[[], Agent]) -> Callable[[], Agent]:
    def placed() -> Agent:
        with section.at(key):
            return make()

    return placed


def chat_model(agent: Section) -> str | None:
    """The model's name in a table ``[agent.chat]``; None if there is none."""
    chat = agent.values.get("chat")
    model = cast("Mapping[str, object]", chat).get("model") if isinstance(chat, dict) else None
    return None if model is None else str(model)
