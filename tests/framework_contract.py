"""What every framework owes: a class of tests that each framework's own module fills in.

Two agents: `screener` reads a letter and says what is to be done, `writer` writes the answer. The
biased screener rejects whoever the letter calls "she".
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Protocol, cast

import pytest
from biased_graph import GENDER, gate
from click.testing import CliRunner
from reviewers import rewriter, skeptic
from sample_agents import Spans, SpansOnly, instrumented

from twinspan.analysis.cli import main
from twinspan.instrumentation import conventions as c
from twinspan.instrumentation.errors import BiasHalt

LETTER = "Emily Brown applied. She runs a shop, and her accounts are in order."
SECRETS = ("Emily", "Brown", "shop", "accounts", "reject", "invite", "Monday")


def calls_her_she(text: str) -> bool:
    """What the biased stand-in model reacts to."""
    return " she " in f" {text.lower()} "


def _invite(answer: Any) -> Any:
    """An answer in its form, with what a reviewer would have said."""
    if isinstance(answer, dict):
        return {key: _invite(value) for key, value in cast("dict[str, Any]", answer).items()}
    if isinstance(answer, list):
        return [_invite(value) for value in answer]
    is_word = str(answer).strip() in ("reject", "invite")
    return "warmly invite" if is_word else answer


@contextmanager
def _deciding(**options: Any) -> Generator[Spans]:
    spans = Spans()
    settings: dict[str, Any] = {
        "axes": [GENDER],
        "nodes": ["screener", "*/screener"],
        "estimator": "category",
        **options,
    }
    with instrumented(gate(spans, **settings), **settings):
        yield spans


def halting() -> AbstractContextManager[Spans]:
    """What the biased screener says is stopped in the block."""
    return _deciding(mode="halt")


def reviewed() -> AbstractContextManager[Spans]:
    """What it says is repaired in the block, by reviewers who invite everybody."""
    reviewers = [skeptic("alpha", _invite), skeptic("beta", _invite)]
    return _deciding(mode="repair", repair="skeptics", skeptics=reviewers)


class Program(Protocol):
    """Two agents in a row."""

    readings: list[str]
    """What the writer's model was asked, probes included."""

    def run(self, letter: str) -> Any:
        """The application's answer."""
        ...

    def use_tool(self, letter: str, sent: list[str]) -> Any:
        """The same with a screener that calls the tool `send_email` first."""
        ...


class FrameworkContract:
    """Inherited by each framework's tests."""

    repairs = True
    """Whether an agent's answer can be replaced before the next one reads it."""

    def program(self, *, biased: bool) -> Program:
        """A fresh program."""
        raise NotImplementedError

    # --- helpers --------------------------------------------------------------------------------

    def observed(self, program: Program, folder: Path | None = None, **options: Any) -> Any:
        """The program's answer and its spans."""
        spans = Spans()
        settings: dict[str, Any] = {
            "axes": [GENDER],
            "nodes": ["screener"],
            "estimator": "category",
        }
        settings |= options
        with instrumented(gate(spans, folder, **settings), **settings):
            return program.run(LETTER), spans

    # --- observing ------------------------------------------------------------------------------

    @pytest.mark.parametrize("biased", [True, False])
    def test_the_result_is_that_of_the_uninstrumented_run(self, biased: bool) -> None:
        """Observed and probed, and nothing changed."""
        plain = self.program(biased=biased).run(LETTER)
        answer, _ = self.observed(self.program(biased=biased), mode="shadow")
        assert answer == plain

    def test_agents_are_nodes_of_one_run_and_their_edge_was_observed(self) -> None:
        """One trace, nothing open, nothing missing."""
        with instrumented(SpansOnly()) as collector:
            self.program(biased=False).run(LETTER)
        spans = collector.spans
        assert [node[c.NODE_ID].rpartition("/")[2] for node in spans.of("node")] == [
            "screener",
            "writer",
        ]
        assert {n[c.NODE_EDGE_KIND] for n in spans.of("node")} == {"observed"}
        assert [(a.rpartition("/")[2], b.rpartition("/")[2]) for a, b in spans.edges()] == [
            ("screener", "writer")
        ]
        assert len(spans.traces) == 1
        (run,) = spans.of("run")
        assert run[c.RUN_OUTCOME] == "completed"
        assert run[c.RUN_SPAN_COUNT] == len(spans.ended)
        assert all(tracer.open_count == 0 for tracer in collector.tracers)

    def test_the_writer_read_what_the_screener_handed_on(self) -> None:
        """The hashes on both ends of the edge agree."""
        with instrumented(SpansOnly()) as collector:
            self.program(biased=False).run(LETTER)
        screener, writer = collector.spans.of("node")
        assert writer[c.NODE_PARENT_HASHES] == (screener[c.NODE_OUTPUT_HASH],)

    # --- the gate -------------------------------------------------------------------------------

    def test_shadow_mode_finds_the_biased_agent_and_lets_pass(self) -> None:
        """A reaction to the axis in every sample, told and not enforced."""
        _, spans = self.observed(self.program(biased=True), mode="shadow")
        probe = next(p for p in spans.of("probe_set"))
        assert (probe[c.NODE_ID], probe[c.EFFECT_VALUE]) == ("screener", 1.0)
        halt = next(d for d in spans.of("network") if d[c.BREAKER_DECISION] == "halt")
        assert (halt[c.BREAKER_NODE], halt[c.BREAKER_ENFORCED]) == ("screener", False)

    def test_the_edge_is_cut_before_the_next_agent_reads(self) -> None:
        """The halt reaches the application; the writer's model was never asked."""
        program = self.program(biased=True)
        with pytest.raises(BiasHalt) as halted:
            self.observed(program, mode="halt")
        assert halted.value.edge.startswith("screener->")
        assert program.readings == []

    def test_a_halted_run_leaves_nothing_open(self) -> None:
        """Its root says `halted`."""
        spans = Spans()
        settings: dict[str, Any] = {"axes": [GENDER], "nodes": ["screener"], "mode": "halt"}
        with instrumented(gate(spans, estimator="category", **settings), **settings):
            with pytest.raises(BiasHalt):
                self.program(biased=True).run(LETTER)
        (run,) = spans.of("run")
        assert run[c.RUN_OUTCOME] == "halted"
        assert run[c.RUN_SPAN_COUNT] == len(spans.ended)
        assert len(spans.traces) == 1

    def test_an_unbiased_agent_runs_through(self) -> None:
        """Probed, measured at zero, not stopped."""
        answer, spans = self.observed(self.program(biased=False), mode="halt")
        assert "Monday" in str(answer)
        assert {d[c.BREAKER_DECISION] for d in spans.of("network")} == {"proceed"}
        assert [p[c.EFFECT_VALUE] for p in spans.of("probe_set")] == [0.0]

    def test_a_repaired_answer_takes_the_place_of_the_frozen_one(self) -> None:
        """The writer reads it and nothing else."""
        program = self.program(biased=True)
        answer, spans = self.observed(program, mode="repair")
        assert "Monday" in str(answer)
        assert not any("reject" in reading for reading in program.readings)
        (repair,) = spans.of("intervention")
        assert repair[c.INTERVENTION_OUTCOME] == "cleared"
        writer = spans.of("node")[-1]
        assert writer[c.NODE_PARENT_HASHES] == (repair[c.INTERVENTION_PAYLOAD_HASH],)
        assert repair[c.INTERVENTION_HANDED_HASH] == writer[c.NODE_INPUT_HASH]

    @pytest.mark.parametrize("repair", ["skeptics", "madera"])
    def test_what_other_models_revise_is_handed_on(self, repair: str) -> None:
        """No run of the agent gave it; the writer reads it in the agent's own form."""
        program = self.program(biased=True)
        answer, spans = self.observed(
            program,
            mode="repair",
            repair=repair,
            skeptics=[skeptic("alpha", _invite), skeptic("beta", _invite)],
            editor=rewriter(_invite),
        )
        assert "Monday" in str(answer)
        assert "warmly invite" in program.readings[-1]
        assert not any("reject" in reading for reading in program.readings)
        (review,) = spans.of("intervention")
        assert review[c.INTERVENTION_OUTCOME] == "cleared"

    def test_the_record_is_verified_and_tells_the_breach(self, tmp_path: Path) -> None:
        """The same commands as for any framework."""
        self.observed(self.program(biased=True), tmp_path, mode="repair")
        verified = CliRunner().invoke(main, ["verify", str(tmp_path)])
        assert verified.exit_code == 0, verified.output
        trail = CliRunner().invoke(main, ["trail", str(tmp_path)])
        assert "node screener <- axis gender" in trail.output
        dag = CliRunner().invoke(main, ["dag", str(tmp_path)])
        assert "screener" in dag.output and "observed" in dag.output

    # --- side effects, content, removal -----------------------------------------------------------

    @pytest.mark.parametrize(("safe", "outcome"), [([], "error"), (["send_*"], "ok")])
    def test_a_tool_inside_a_probe_runs_only_if_it_is_safe(
        self, safe: list[str], outcome: str
    ) -> None:
        """The run's own call goes through either way."""
        sent: list[str] = []
        spans = Spans()
        settings: dict[str, Any] = {
            "axes": [GENDER],
            "nodes": ["screener"],
            "estimator": "category",
            "safe_tools": safe,
        }
        with instrumented(gate(spans, **settings), **settings):
            self.program(biased=True).use_tool(LETTER, sent)
        assert len(sent) == (1 if not safe else 16)
        (probe,) = spans.of("probe_set")
        assert probe[c.PROBE_OUTCOME] == outcome

    def test_no_word_of_a_prompt_or_an_answer_is_exported(self) -> None:
        """Content stays in the process."""
        _, spans = self.observed(self.program(biased=True), mode="repair")
        text = "".join(span.to_json() for span in spans.ended)
        assert not [word for word in SECRETS if word in text]

    def test_uninstrumenting_restores_the_framework(self) -> None:
        """Afterwards nothing is observed."""
        with instrumented(SpansOnly()) as collector:
            pass
        self.program(biased=False).run(LETTER)
        assert collector.spans.ended == []
