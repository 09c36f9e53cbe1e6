"""Path permutation as the trigger of live runs."""

from __future__ import annotations

import uuid
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from biased_graph import GENDER, TEXT, Graph, gate
from opentelemetry.trace import INVALID_SPAN_CONTEXT
from sample_agents import Spans, instrumented

from twinspan.analysis.store import open_store
from twinspan.analysis.verify import verify
from twinspan.collector.path_watch import PathWatch, permuted_deltas
from twinspan.collector.records import ProbeRecord, record_of
from twinspan.instrumentation import builtin_axis
from twinspan.instrumentation import conventions as c
from twinspan.instrumentation.errors import BiasHalt, ConfigurationError
from twinspan.instrumentation.orbit import orbit_test, square
from twinspan.instrumentation.settings import Settings


def probe(answers: str, n: int, *, node: str = "n", axis: str = "a") -> ProbeRecord:
    """A probe set whose answers are letters, the first n of them the reference."""
    told = {
        c.RUN_ID: "r",
        c.PROBE_SET_ID: uuid.uuid4().hex,
        c.NODE_ID: node,
        c.NODE_TASK_ID: uuid.uuid4().hex,
        c.PROBE_AXIS: axis,
        c.SUPERSTEP_SCOPE: "",
        c.SUPERSTEP_INDEX: 1,
        c.NODE_WEIGHT: 1.0,
        c.DIVERGENCE_REFERENCE_COUNT: n,
        c.DIVERGENCE_COUNTERFACTUAL_COUNT: len(answers) - n,
        c.DIVERGENCE_DISTANCES: [float(x != y) for x, y in combinations(answers, 2)],
    }
    return record_of(told, INVALID_SPAN_CONTEXT)


def test_replicas_follow_the_orbit() -> None:
    """Observed first; mean and deviation of the random labellings are those of all of them."""
    record = probe("aaaabbcbbca", 7)
    deltas = permuted_deltas(record, 20_000)
    orbit = orbit_test(square(record.distances), 7)
    assert deltas[0] == pytest.approx(orbit.delta)
    assert deltas[1:].mean() == pytest.approx(0.0, abs=4 * orbit.sd / 20_000**0.5)
    assert deltas[1:].std() == pytest.approx(orbit.sd, rel=0.03)


def test_replicas_can_be_drawn_again_and_differ_between_probes() -> None:
    one, other = probe("aabbabab", 5), probe("aabbabab", 5)
    assert np.array_equal(permuted_deltas(one, 50), permuted_deltas(one, 50))
    assert not np.array_equal(permuted_deltas(one, 50), permuted_deltas(other, 50))


def test_clean_runs_are_halted_at_most_as_often_as_alpha_says() -> None:
    """600 runs of four supersteps, two nodes, two axes that share nothing but the answers."""
    rng, halted = np.random.default_rng(5), 0
    for _ in range(600):
        watch = PathWatch(
            axes=("a", "b"), alpha=0.1, horizon=4, smoothing=0.7, reduction="impact_sum"
        )
        for _ in range(4):
            scored = [
                probe("".join(rng.choice(list("abc"), size=15)), 10, node=node, axis=axis)
                for node in ("n", "m")
                for axis in ("a", "b")
            ]
            watch.update(scored, {"n": 1.0, "m": 0.5})
        halted += bool(watch.fired)
    assert halted / 600 <= 0.1 + 2 * (0.1 * 0.9 / 600) ** 0.5


def test_a_restart_leaves_half_of_the_level_and_a_fresh_path() -> None:
    watch = PathWatch(axes=("a",), alpha=0.05, horizon=1, smoothing=0.7, reduction="impact_sum")
    watch.update([probe("a" * 10 + "b" * 5, 10)], {"n": 1.0})
    assert watch.fired == ("a",)
    assert watch.ranks[0] <= 0.01
    watch.restart()
    assert not watch.fired and list(watch.ranks) == [1.0]
    watch.update([probe("aabbababbabaaba", 10)], {"n": 1.0})
    assert not watch.fired


@pytest.mark.parametrize("plan", ["adaptive", "thorough"])
def test_it_is_refused_with_adaptive_probing(plan: str) -> None:
    with pytest.raises(ConfigurationError, match="use plan 'fixed'"):
        Settings.resolve({"trigger": "path", "plan": plan}, environ={})


def run(folder: Path, **options: Any) -> Spans:
    spans = Spans()
    given: dict[str, Any] = {
        "axes": [GENDER, builtin_axis("age")],
        "nodes": ["*"],
        "trigger": "path",
        **options,
    }
    with instrumented(gate(spans, folder, **given), **given):
        Graph().compiled.invoke({"text": f"{TEXT} The woman is 34 years old."})
    return spans


def test_a_live_run_is_halted_by_its_path(tmp_path: Path) -> None:
    with pytest.raises(BiasHalt) as halted:
        run(tmp_path / "spans", mode="halt")
    assert halted.value.reason == "path_among_highest"
    assert halted.value.edge == "analyst_a->reviewer"
    assert [each.verdict for each in verified(tmp_path)] == ["verified"]


def test_a_repaired_run_goes_on_with_a_fresh_path(tmp_path: Path) -> None:
    spans = run(tmp_path / "spans", mode="repair")
    told = [(d[c.BREAKER_DECISION], d[c.PATH_FIRED]) for d in spans.of("network")]
    assert ("halt", ("gender",)) in told
    assert told[-1] == ("proceed", ())
    assert [each.verdict for each in verified(tmp_path)] == ["verified"]


def test_an_altered_rank_is_named(tmp_path: Path) -> None:
    run(tmp_path / "spans")
    for path in (tmp_path / "spans").rglob("*.parquet"):
        rows = pq.read_table(path)
        ranks = [
            None if ranks is None else [0.5 * rank for rank in ranks]
            for ranks in rows.column("path_ranks").to_pylist()
        ]
        place = rows.column_names.index("path_ranks")
        pq.write_table(rows.set_column(place, "path_ranks", pa.array(ranks)), path)
    (found,) = verified(tmp_path)
    assert found.verdict == "mismatch"
    assert c.PATH_RANKS in {each.what for each in found.mismatches}


def verified(folder: Path) -> list[Any]:
    with open_store(str(folder / "spans")) as store:
        return verify(store)
