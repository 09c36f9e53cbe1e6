"""From a node's answer to the outcome that two answers are compared by."""

from __future__ import annotations

from typing import Any, cast

from twinspan.instrumentation.errors import ConfigurationError
from twinspan.instrumentation.narrowing import as_mapping, as_sequence


def _text_of(content: object) -> object:
    """A message's text, whether its content is a string or a list of blocks."""
    blocks = as_sequence(content)
    if blocks is None:
        return content
    fields = [as_mapping(block) for block in blocks]
    return "".join(
        str(block) if field is None else str(field.get("text", ""))
        for block, field in zip(blocks, fields, strict=True)
    )


def _plain(answer: object) -> object:
    """A message becomes its text, a model its fields, a list of messages its last one's text."""
    if hasattr(answer, "content") and hasattr(answer, "type"):
        return _text_of(cast(Any, answer).content)
    dump = getattr(answer, "model_dump", None)
    if callable(dump):
        return dump()
    items = as_sequence(answer)
    if items and hasattr(items[-1], "content"):
        return _plain(items[-1])
    return answer


def _step_into(answer: object, step: str) -> object:
    mapping, items = as_mapping(answer), as_sequence(answer)
    if mapping is not None:
        return mapping.get(step)
    if items is not None and step.isdigit():
        return items[int(step)] if int(step) < len(items) else None
    return getattr(answer, step, None)


def outcome_of(answer: object, path: str | None = None) -> object:
    """What two answers of a node are compared by.

    With a dotted `path`, that part of the answer. Without, the answer itself, where a mapping
    with a single entry stands for that entry (a state update of one key), a message for its
    text and a model for its fields.

    Raises:
        ConfigurationError: if no part of the answer lies at `path`.

    >>> outcome_of({"credit": {"advice": "refer", "memo": "..."}}, "credit.advice")
    'refer'
    >>> outcome_of({"verdict": "approve"})
    'approve'
    """
    if path is not None:
        for step in path.split("."):
            answer = _step_into(_plain(answer), step)
        if answer is None:
            raise ConfigurationError(
                f"outcome {path!r} is not in the node's answer; name a path that is, or unset it"
            )
        return _plain(answer)
    plain = _plain(answer)
    mapping = as_mapping(plain)
    if mapping is not None and len(mapping) == 1:
        return _plain(next(iter(mapping.values())))
    return plain
