"""Which spans of a trace begin a run of a graph, and to which run each span belongs."""

from __future__ import annotations

from twinspan.analysis.dialects.foreign import ForeignSpan, rank_of
from twinspan.analysis.dialects.matching import Interval, same
from twinspan.analysis.dialects.span_tree import SpanTree, Told


class GraphRuns:
    """The runs of one trace.

    A run begins with the outermost span of its graph. Several instrumentors each tell the same
    graph: one inside the other, or side by side at the same time; that is one run.

    Args:
        tree: the trace.
    """

    def __init__(self, tree: SpanTree) -> None:
        self._tree = tree
        self._begins: dict[str, Told] = {}
        for told in tree.told:
            graph = self._graph_of(told)
            if graph is not None and graph.span.span_id not in self._begins:
                self._begins[graph.span.span_id] = self._outermost(graph)
        self._merge()
        self._members: dict[str, list[Told]] = {}
        for told in tree.told:
            if told.may_be_graph and told.span.span_id in self._begins:
                root = self._begins[told.span.span_id].span.span_id
                self._members.setdefault(root, []).append(told)

    @property
    def roots(self) -> list[Told]:
        """The span that stands for each run."""
        return list({each.span.span_id: each for each in self._begins.values()}.values())

    def members(self, root: Told) -> list[Told]:
        """All spans that tell the graph of a run, the root first."""
        members = self._members.get(root.span.span_id, [])
        return [root, *(each for each in members if each is not root)]

    def root_of(self, told: Told) -> Told | None:
        """The run that a span belongs to, as its root."""
        for each in (told, *self._tree.above(told)):
            found = self._begins.get(each.span.span_id)
            if found is not None:
                return found
        return None

    def run_id(self, told: Told) -> str:
        """The id of the run a span belongs to.

        It names the trace and the run's first span. Of a run whose first span is lost, the
        outermost span that is known stands in.
        """
        root = self.root_of(told)
        if root is not None:
            return run_id_of(root.span)
        *_, last = (told, *self._tree.above(told))
        return f"{told.span.trace_id}-{last.span.parent_span_id or last.span.span_id}"

    def _graph_of(self, told: Told) -> Told | None:
        """The span that a span shows to be a graph outside of all nodes."""
        if told.is_graph:
            return None if self._tree.step_above(told) else told
        if not told.is_step:
            return None
        for each in self._tree.around(told):
            if each.is_step:
                return None
            if each.may_be_graph:
                return each
        return None

    def _outermost(self, graph: Told) -> Told:
        """The outermost graph around a graph's span, whatever its name.

        A subgraph lies in a node, but beside another instrumentation its span may hang below the
        outer graph's itself. A chain is a graph only if it has the graph's name.
        """
        found = graph
        for each in self._tree.around(graph):
            if each.is_step:
                break
            if each.is_graph or (each.may_be_graph and _name(each) == _name(graph)):
                found = each
        self._begins[found.span.span_id] = found
        return found

    def _merge(self) -> None:
        """Make one run of those that different dialects tell side by side."""
        roots = {each.span.span_id: each for each in self.roots}
        one = same([_interval(each) for each in roots.values()])
        self._begins = {
            span_id: roots[one[root.span.span_id]] for span_id, root in self._begins.items()
        }


def run_id_of(root: ForeignSpan) -> str:
    """The id of the run that a span begins; the same whenever it is read."""
    return f"{root.trace_id}-{root.span_id}"


def _name(told: Told) -> str | None:
    return told.reading.graph if told.reading else None


def _interval(root: Told) -> Interval:
    span = root.span
    return Interval(
        span_id=span.span_id,
        rank=0 if root.reading is None else rank_of(root.reading),
        start=span.start,
        end=span.end,
        place=(span.parent_span_id or "", _name(root) or ""),
    )
