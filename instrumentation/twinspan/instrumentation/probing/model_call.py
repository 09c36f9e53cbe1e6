"""What a node asked a model, so that the model can be asked again without the node."""

from __future__ import annotations

from typing import Any, Final, Protocol

NO_MODEL_CALL: Final = "no_model_call"
"""Why a node is not probed at the level of its models: it asked none."""


class ModelCall(Protocol):
    """One call of a model, as a framework's adapter saw it."""

    @property
    def asked(self) -> Any:
        """What the model was asked: the payload of the probe."""
        ...

    def ask(self, asked: Any, /) -> Any:
        """Ask the same model in the same way; returns its answer."""
        ...

    async def asking(self, asked: Any, /) -> Any:
        """The same on an event loop."""
        ...
