"""Installs and removes the hooks in the SDK's runner."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Final

from agents import run as runner_module
from agents.run import AgentRunner
from agents.run_internal import run_loop

from twinspan.instrumentation.engine import Engine
from twinspan.instrumentation.frameworks.openai_agents.model import ObservedModel
from twinspan.instrumentation.frameworks.openai_agents.rerun import rerunning
from twinspan.instrumentation.frameworks.openai_agents.session import (
    Session,
    current_session,
    session_variable,
    topology_of,
)
from twinspan.instrumentation.frameworks.patching import Patches
from twinspan.instrumentation.frameworks.place import Place, current_place, is_unobserved
from twinspan.instrumentation.frameworks.stepwise import run_of
from twinspan.instrumentation.safety import harmless

_patches: Final = Patches()


class _Hooks:
    """The wrappers of one instrumentation."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    # --- runs --------------------------------------------------------------------------------

    async def run(self, wrapped: Any, runner: Any, args: Any, kwargs: Any) -> Any:
        """A run: what it returns is the SDK's own result."""
        if is_unobserved():
            # A run inside of an agent that is run again is not that agent's own.
            with rerunning(False):
                return await wrapped(*args, **kwargs)
        agent, given = _arguments(args, kwargs)
        async with self._session(agent, given, wrapped, kwargs) as session:
            result = await wrapped(*args, **kwargs)
            if session is not None:
                final = await session.ended(result.final_output)
                if final is not result.final_output:
                    result.final_output = final
                session.hand_out(result.final_output, list(result.new_items))
            return result

    async def start_streaming(self, wrapped: Any, _: Any, args: Any, kwargs: Any) -> Any:
        """The task behind a streamed run."""
        if is_unobserved():
            return await wrapped(*args, **kwargs)
        agent, given = kwargs["starting_agent"], kwargs["starting_input"]
        original = AgentRunner.run.__wrapped__.__get__(runner_module.DEFAULT_AGENT_RUNNER)  # type: ignore[attr-defined]
        options = {"context": kwargs["context_wrapper"].context, "run_config": kwargs["run_config"]}
        async with self._session(agent, given, original, options) as session:
            outcome = await wrapped(*args, **kwargs)
            if session is not None:
                result = kwargs["streamed_result"]
                result.final_output = await session.ended(result.final_output)
                session.hand_out(result.final_output, list(result.new_items))
            return outcome

    @asynccontextmanager
    async def _session(
        self, agent: Any, given: Any, run: Any, options: dict[str, Any]
    ) -> AsyncGenerator[Session | None]:
        with self._place(agent) as (place, is_root):
            session: Session | None = None
            with harmless(self._engine.failures, "starting a run"):
                if place is not None:
                    session = Session(place, given, is_root=is_root, run=run, options=dict(options))
            token = session_variable.set(session)
            try:
                yield session
            except BaseException as error:
                if session is not None:
                    session.failed(error)
                raise
            finally:
                session_variable.reset(token)

    @contextmanager
    def _place(self, agent: Any) -> Generator[tuple[Place | None, bool]]:
        """Where a run takes place, and whether it is one of its own.

        An agent that another agent calls as a tool belongs to that one.
        """
        outer = current_session()
        if outer is not None and outer.step is not None:
            yield outer.step.place, False
        elif (place := current_place()) is not None:
            yield place, False
        else:
            with run_of(self._engine, topology_of(agent)) as place:
                yield place, True

    # --- models ------------------------------------------------------------------------------

    def get_model(self, wrapped: Any, _: Any, args: Any, kwargs: Any) -> Any:
        """An agent's model, observed."""
        model = wrapped(*args, **kwargs)
        return ObservedModel(model, args[0] if args else kwargs["agent"])


def _arguments(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any]:
    agent = args[0] if args else kwargs["starting_agent"]
    return agent, args[1] if len(args) > 1 else kwargs.get("input")


def install(engine: Engine) -> None:
    """Hook every run of the process."""
    hooks = _Hooks(engine)
    _patches.wrap(AgentRunner, "run", hooks.run)
    _patches.wrap(runner_module, "start_streaming", hooks.start_streaming)
    _patches.wrap(run_loop, "get_model", hooks.get_model)


def uninstall() -> None:
    """Put the SDK back as it was."""
    _patches.undo()
