"""Edges of the agent graph and their kinds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal, NamedTuple, TypeAlias, cast

from twinspan.instrumentation.errors import TopologyError

EdgeKind: TypeAlias = Literal["static", "subgraph", "send", "conditional", "observed", "inferred"]

EDGE_KINDS: Final[tuple[EdgeKind, ...]] = (
    "static",
    "subgraph",
    "send",
    "conditional",
    "observed",
    "inferred",
)
"""Every kind, the most certain first: of two edges between the same nodes the first wins."""

_CERTAINTY: Final = {kind: rank for rank, kind in enumerate(EDGE_KINDS)}


class Edge(NamedTuple):
    """One way a payload can take, from the node that writes it to the node that reads it.

    >>> str(Edge("draft", "review", "conditional"))
    'draft->review'
    """

    source: str
    target: str
    kind: EdgeKind = "static"

    def __str__(self) -> str:
        return f"{self.source}->{self.target}"


EdgeLike: TypeAlias = tuple[str, str] | tuple[str, str, EdgeKind] | Edge


def deduplicated(edges: Iterable[EdgeLike]) -> dict[tuple[str, str], EdgeKind]:
    """Each pair once, in the order of arrival, with its most certain kind."""
    given = list(edges)
    if set(map(type, given)) == {tuple} and set(map(len, given)) == {2}:
        return dict.fromkeys(cast("list[tuple[str, str]]", given), "static")  # ten times as fast
    pairs: dict[tuple[str, str], EdgeKind] = {}
    for edge in given:
        pair, kind = _checked(edge)
        known = pairs.get(pair)
        if known is None or _CERTAINTY[kind] < _CERTAINTY[known]:
            pairs[pair] = kind
    return pairs


def _checked(edge: EdgeLike) -> tuple[tuple[str, str], EdgeKind]:
    # A string of two letters would unpack into two nodes.
    if isinstance(cast(object, edge), str) or not 2 <= len(edge) <= 3:
        raise TopologyError(f"{edge!r} is no edge; give (source, target) or add a kind")
    kind = edge[2] if len(edge) == 3 else "static"
    if kind not in _CERTAINTY:
        raise TopologyError(f"edge kind {kind!r} is unknown; use one of {', '.join(EDGE_KINDS)}")
    return (edge[0], edge[1]), kind
