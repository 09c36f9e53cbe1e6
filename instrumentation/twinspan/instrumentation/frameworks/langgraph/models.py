"""LangChain chat models that a node calls: noted while it runs, asked again in a probe."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.language_models import BaseChatModel

from twinspan.instrumentation.frameworks.langgraph.scope import current_holder
from twinspan.instrumentation.probing.guard import current_probe

# What belongs to the one call and not to how the model is asked.
_OF_THE_CALL = ("callbacks", "tags", "metadata", "run_name", "run_id")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatCall:
    """One call of a chat model.

    Attributes:
        model: the model.
        asked: the messages it was given.
        options: everything else, such as bound tools and stop words.
    """

    model: BaseChatModel
    asked: list[Any] = field(repr=False)
    options: Mapping[str, Any]

    def ask(self, asked: list[Any], /) -> Any:
        """Ask the model again; no handler of the run hears it."""
        result = self.model.generate([list(asked)], callbacks=[], **self.options)
        return _answer(result.generations[0][0])

    async def asking(self, asked: list[Any], /) -> Any:
        """The same on an event loop."""
        result = await self.model.agenerate([list(asked)], callbacks=[], **self.options)
        return _answer(result.generations[0][0])


def note_call(model: BaseChatModel, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Note a call of `generate` or `agenerate` for the node that makes it."""
    holder = current_holder.get()
    if holder is None or current_probe() is not None:
        return
    if holder.run.engine.settings.probe.level != "model":
        return
    options = {key: value for key, value in kwargs.items() if key not in _OF_THE_CALL}
    batches = args[0] if args else options.pop("messages", [])
    options.pop("messages", None)
    if len(args) > 1:
        options["stop"] = args[1]
    holder.model_calls.extend(
        ChatCall(model=model, asked=list(messages), options=options) for messages in batches
    )


def _answer(generation: Any) -> Any:
    """What a model said: its text, with the tools that it wants called where it does."""
    message = generation.message
    wanted = [
        {"name": call["name"], "args": call["args"]} for call in getattr(message, "tool_calls", ())
    ]
    return {"text": message.text, "tool_calls": wanted} if wanted else str(message.text)
