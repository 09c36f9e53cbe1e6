"""The reference repair: the node runs again, blind to the axis.

The axis's words in the payload that the node read are replaced by neutral ones, so that its
answer cannot depend on the group. No model of its own is needed, and the result is one that the
node itself gives: nobody rewrites it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from twinspan.instrumentation.gate import Execution, Rerun
from twinspan.instrumentation.perturbation import Axis


@dataclass(frozen=True, slots=True, kw_only=True)
class BlindRerun:
    """Runs one execution's node again on payloads without the axis's words.

    Attributes:
        axes: the axes to be blind to, one after another.
        rerun: runs the node on a payload.
    """

    axes: tuple[Axis, ...]
    rerun: Rerun

    @classmethod
    def of(cls, execution: Execution, axes: tuple[Axis, ...]) -> BlindRerun | None:
        """The repair of an execution, if there is one.

        None where the node must not run again, or where no axis has neutral words for what
        it read.
        """
        if execution.rerun is None:
            return None
        if all(axis.neutral(execution.received).no_op for axis in axes):
            return None
        return cls(axes=axes, rerun=execution.rerun)

    async def __call__(self, payload: Any) -> Any:
        """The node's answer to a payload, blind."""
        for axis in self.axes:
            payload = axis.neutral(payload).payload
        return await self.rerun(payload)
