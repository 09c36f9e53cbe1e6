"""Parts that leave out columns in which they have no value read like whole ones."""

from __future__ import annotations

import shutil
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest
from opentelemetry.sdk.trace import TracerProvider
from recorded_runs import ended_spans, parts, recording, small_run, table_of

from twinspan.analysis.compacting import compact
from twinspan.analysis.demo.run import run_demo
from twinspan.analysis.importing import import_spans
from twinspan.analysis.store import Store, open_store
from twinspan.analysis.verify import verify
from twinspan.analysis.views import VIEWS, script
from twinspan.collector.recorder import Recorder
from twinspan.collector.run_files import read_run
from twinspan.collector.schema import SPAN_SCHEMA, with_all_columns
from twinspan.instrumentation import conventions as c


def leave_out(path: Path, *names: str) -> None:
    """Write a part anew without columns that have no value, and without those named."""
    table = pq.ParquetFile(path).read()
    kept = [
        name
        for name in table.column_names
        if name not in names and table[name].null_count < table.num_rows
    ]
    pq.write_table(table.select(kept), path, store_schema=False)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A demo run and a small one, every column in every part."""
    folder = tmp_path_factory.mktemp("whole") / "spans"
    run_demo(folder, seed=0)
    with recording(folder) as (telemetry, recorder):
        small_run(telemetry, "r1")
        recorder.flush()
    for part in parts(folder):
        pq.write_table(with_all_columns([pq.ParquetFile(part).read()]), part, store_schema=False)
    return folder


@pytest.fixture
def sparse(whole: Path, tmp_path: Path) -> Path:
    """The same spans in parts that say only what there is to say."""
    folder = Path(shutil.copytree(whole, tmp_path / "sparse"))
    for part in parts(folder):
        leave_out(part)
    return folder


def answers(store: Store) -> dict[str, object]:
    """What every view says."""
    return {view: store.table(f"SELECT * FROM {view} ORDER BY ALL") for view in VIEWS}


def test_such_parts_lack_columns_and_not_the_same_ones(sparse: Path) -> None:
    """Else these tests would show nothing."""
    columns = {tuple(pq.read_schema(part).names) for part in parts(sparse)}
    assert len(columns) > 1
    assert set[str]().union(*columns) < set(SPAN_SCHEMA.names)


def test_every_view_says_the_same(whole: Path, sparse: Path) -> None:
    """Whatever is asked, in the same columns."""
    with open_store(whole) as one, open_store(sparse) as other:
        assert answers(one) == answers(other)
        assert one.problems == other.problems == ()


def test_the_proof_says_the_same(whole: Path, sparse: Path) -> None:
    """Scores, decisions, chain and completeness."""
    with open_store(whole) as one, open_store(sparse) as other:
        assert verify(one) == verify(other)
        assert {each.verdict for each in verify(other)} == {"verified"}


def test_arrow_has_every_column(sparse: Path) -> None:
    """For polars, pandas and whoever reads Arrow."""
    names = ", ".join(SPAN_SCHEMA.names)
    with open_store(sparse) as store:
        assert store.arrow(f"SELECT {names} FROM spans").schema.names == SPAN_SCHEMA.names


def test_the_printed_sql_reads_them_without_twinspan(whole: Path, sparse: Path) -> None:
    """In a plain DuckDB, views of columns that no part has included."""
    with duckdb.connect() as connection, open_store(whole) as store:
        connection.execute(script(str(sparse)))
        for view in VIEWS:
            query = f"SELECT * FROM {view} ORDER BY ALL"
            assert connection.execute(query).fetchall() == list(store.table(query).rows), view


def test_a_run_is_taken_up_from_them(whole: Path, sparse: Path) -> None:
    """What a run goes on from does not depend on what its files leave out."""
    with open_store(whole) as store:
        runs = store.run_ids()
    assert [read_run(sparse, run) for run in runs] == [read_run(whole, run) for run in runs]


def test_a_compaction_merges_them(whole: Path, sparse: Path) -> None:
    """Into parts that say the same."""
    for part in parts(sparse):
        table = pq.ParquetFile(part).read()
        pq.write_table(table.replace_schema_metadata({"schema_version": "1"}), part)
    assert compact(sparse, settled_seconds=-1).files_after == 2
    with open_store(whole) as one, open_store(sparse) as other:
        assert answers(one) == answers(other)


def test_an_import_fills_them_in(whole: Path, sparse: Path, tmp_path: Path) -> None:
    """The same rows again."""
    import_spans(sparse, tmp_path / "out")
    with open_store(whole) as one, open_store(tmp_path / "out") as other:
        assert answers(one) == answers(other)


def test_spans_of_no_run_at_all(tmp_path: Path) -> None:
    """Somebody else's, handed to our recorder: nothing of ours is in any column."""
    provider = TracerProvider()
    provider.add_span_processor(Recorder(tmp_path))
    provider.get_tracer("theirs").start_span("x").end()
    provider.shutdown()
    (part,) = parts(tmp_path)
    leave_out(part)
    assert {"run_id", "span_type"}.isdisjoint(pq.read_schema(part).names)
    with open_store(tmp_path) as store:
        assert store.table("SELECT name, run_id FROM spans").rows == (("x", None),)
        assert store.table("SELECT count(*) FROM trail").rows == ((0,),)
        assert verify(store) == []
    assert compact(tmp_path, settled_seconds=-1, keep_days=1).expired_spans == 0


def test_what_is_united_keeps_its_types() -> None:
    """Also where one table has a column and another one has not."""
    (span,) = ended_spans({c.NODE_ID: "a"})
    one = table_of([span])
    united = with_all_columns([one.drop_columns(["node_id", "links"]), one])
    assert united.schema.equals(SPAN_SCHEMA)
    assert united["node_id"].to_pylist() == [None, "a"]
