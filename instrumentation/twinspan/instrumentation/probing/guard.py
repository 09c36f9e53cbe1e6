"""Whether the code that runs now runs inside a probe, and what it may do there."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase

from twinspan.instrumentation.errors import SideEffectBlocked


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeFrame:
    """The probe around the running code.

    Attributes:
        run_id: the run that is probed.
        node: the node that is run again.
        task_id: the execution that is probed.
        arm: the arm of the sample.
        superstep: when the node ran; a node that fires again is worded anew.
        repeat: earlier executions of the node in an equally numbered superstep.
        call: which of the execution's model calls is probed, from 1; 0 for the node itself.
        safe_tools: globs of the tools that may run again.
        blocked: tools that were blocked; a node may have caught the error.
    """

    run_id: str
    node: str
    task_id: str
    arm: str
    superstep: int = 0
    repeat: int = 0
    call: int = 0
    safe_tools: tuple[str, ...] = ()
    blocked: list[str] = field(default_factory=list[str], compare=False)

    @property
    def firing(self) -> str:
        """Which execution of the node this is; executions of equal number share no wording."""
        repeat = f"#{self.repeat}" if self.repeat else ""
        call = f"@{self.call}" if self.call else ""
        return f"{self.superstep}{repeat}{call}"

    def of_arm(self, arm: str) -> ProbeFrame:
        """The same probe, running a sample of `arm`."""
        return replace(self, arm=arm, blocked=[])

    def check_tool(self, tool: str) -> None:
        """Let a safe tool pass.

        Raises:
            SideEffectBlocked: if the tool is not listed as safe.
        """
        if not any(fnmatchcase(tool, pattern) for pattern in self.safe_tools):
            self.blocked.append(tool)
            raise SideEffectBlocked(tool)


_frame: ContextVar[ProbeFrame | None] = ContextVar("twinspan_probe", default=None)


def current_probe() -> ProbeFrame | None:
    """The probe around the running code, or None outside of any."""
    return _frame.get()


_unobserved: ContextVar[bool] = ContextVar("twinspan_unobserved", default=False)


def is_unobserved() -> bool:
    """Whether a node is being run again here, so that nothing of it belongs to the run."""
    return _unobserved.get() or _frame.get() is not None


@contextmanager
def unobserved() -> Generator[None]:
    """Nothing that runs in the block is taken for a part of a run; a repair runs nodes so."""
    token = _unobserved.set(True)
    try:
        yield
    finally:
        _unobserved.reset(token)


@contextmanager
def inside_probe(frame: ProbeFrame) -> Generator[None]:
    """Mark the code of the block as running inside a probe."""
    token = _frame.set(frame)
    try:
        yield
    finally:
        _frame.reset(token)
