"""Copies of agents that are asked again, and of messages in which another answer stands."""

# CrewAI is not in the development environment, see the group `crewai-tests`.
# pyright: reportMissingImports=false, reportUnknownVariableType=false

from __future__ import annotations

from copy import copy
from typing import Any, Final

from crewai import Agent
from crewai.agents.agent_builder.utilities.base_token_process import TokenProcess
from crewai.agents.tools_handler import ToolsHandler
from crewai.llms.base_llm import BaseLLM
from crewai.utilities.token_counter_callback import TokenCalcHandler

_STATE: Final = ("_messages", "_tool_failures", "_kickoff_failures", "_parsed_tools")
"""Lists that a `LiteAgent` fills while it runs."""


def own_model(llm: Any) -> Any:
    """The same model with a count of tokens of its own: CrewAI bills by the model's object."""
    if not isinstance(llm, BaseLLM):
        return llm
    own = copy(llm)
    own._token_usage = dict(llm._token_usage)
    return own


def quieted(twin: Any) -> Any:
    """An agent's copy that counts its own tokens, prints nothing and calls nobody back."""
    twin.llm = own_model(twin.llm)
    twin.verbose = False
    if isinstance(twin, Agent):
        twin.crew = None
        twin.step_callback = None
        twin.function_calling_llm = own_model(twin.function_calling_llm)
    return twin


def twin_of(agent: Any) -> Any:
    """A copy of an agent outside a crew, as it is before it is asked.

    Its tools, its memory and its guardrail are the agent's; what it does is its own.
    """
    update: dict[str, Any] = {"tools": list(agent.tools or ()), "tools_results": []}
    if isinstance(agent, Agent):
        update |= {"agent_executor": None, "tools_handler": ToolsHandler()}
    twin = quieted(agent.model_copy(update=update))
    tokens: Any = TokenProcess()
    twin._token_process = tokens
    if isinstance(agent, Agent):
        twin._mcp_resolver = None
        return twin
    for name in _STATE:
        setattr(twin, name, list(getattr(agent, name, ())))
    twin._callbacks = [TokenCalcHandler(token_cost_process=tokens)]
    return twin


def rewritten(messages: Any, frozen: str, answer: str) -> list[Any]:
    """Messages in which an answer stands in the place of a frozen one.

    The last word of the agent was its answer, whatever form the model gave it.
    """
    said = [at for at, each in enumerate(messages) if each.get("role") == "assistant"]
    replaced = {*said[-1:], *(at for at in said if frozen in str(messages[at].get("content")))}
    return [
        {**each, "content": answer} if at in replaced else each for at, each in enumerate(messages)
    ]
