"""One object of any size is read in pieces, and gives what it gives as a whole."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from recorded_runs import ended_spans

from twinspan.analysis.dialects import json_files, json_stream
from twinspan.analysis.dialects.json_stream import Broken, Cursor, pieces
from twinspan.analysis.store import open_store
from twinspan.collector.otlp_json import span_line

_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
_spans = st.lists(st.dictionaries(st.text(), _values, max_size=3), max_size=4)
_scopes = st.lists(
    st.fixed_dictionaries({"scope": _values, "spans": _spans})
    | st.fixed_dictionaries({"spans": _spans, "scope": _values}),
    max_size=3,
)
_documents = st.fixed_dictionaries(
    {
        "before": _values,
        "resourceSpans": st.lists(
            st.fixed_dictionaries({"resource": _values, "scopeSpans": _scopes})
            | st.fixed_dictionaries({"scopeSpans": _scopes, "resource": _values}),
            max_size=3,
        ),
    }
)


def flattened(documents: list[Any]) -> list[tuple[Any, Any, Any]]:
    """Every span with its resource and scope."""
    return [
        (entry.get("resource"), scoped.get("scope"), span)
        for document in documents
        for entry in document.get("resourceSpans", ())
        for scoped in entry.get("scopeSpans", ())
        for span in scoped.get("spans", ())
    ]


_few = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@_few
@given(_documents, st.sampled_from([None, 1]), st.integers(1, 40))
def test_pieces_hold_what_the_whole_holds(document: Any, indent: Any, chunk: int) -> None:
    """Whatever the layout, the order of members and where reading stops."""
    text = json.dumps(document, indent=indent, ensure_ascii=False)
    try:
        encoded = text.encode()
    except UnicodeEncodeError:
        encoded = json.dumps(document, indent=indent).encode()
    patch = pytest.MonkeyPatch()
    with patch.context() as patched:
        patched.setattr(json_stream, "CHUNK_BYTES", chunk)
        patched.setattr(json_stream, "PIECE_SPANS", 2)
        found = list(pieces(Cursor(io.BytesIO(encoded))))
    assert flattened(found) == flattened([json.loads(encoded)])


@_few
@given(_documents, st.data())
def test_a_cut_object_gives_a_beginning(document: Any, data: st.DataObject) -> None:
    """Never an error of another kind, never a span that is not there."""
    encoded = json.dumps(document).encode()
    cut = encoded[: data.draw(st.integers(0, len(encoded) - 1))]
    found: list[Any] = []
    with pytest.raises(Broken):
        for piece in pieces(Cursor(io.BytesIO(cut))):
            found.append(piece)
    spans = flattened(found)
    assert spans == flattened([document])[: len(spans)]


def test_a_long_object_on_one_line_is_read_in_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line longer than may be in memory is no different from many lines."""
    monkeypatch.setattr(json_files, "LONGEST_LINE", 2000)
    monkeypatch.setattr(json_stream, "CHUNK_BYTES", 100)
    documents = [json.loads(span_line(span)) for span in ended_spans(*[{}] * 20)]
    one = {"resourceSpans": [each for d in documents for each in d["resourceSpans"]]}
    path = tmp_path / "a.json"
    path.write_text(json.dumps(one))
    with open_store(path) as store:
        assert len(store.table("SELECT * FROM spans").rows) == 20
        assert store.problems == ()
    path.write_text(json.dumps(one)[:-2000] + "\n" + json.dumps(documents[0]) + "\n")
    with open_store(path) as store:
        assert 0 < len(store.table("SELECT * FROM spans").rows) < 20
        assert [problem.count for problem in store.problems if "object is" in problem.what] == [1]
