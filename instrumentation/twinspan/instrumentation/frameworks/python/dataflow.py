"""The graph of a pipeline, read from its own text: which node's answer reaches which node.

A pipeline's function says who can hand what to whom before it has run once: nodes are weighed
by it, and a halted edge is named by it. Only names are followed, never values.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import textwrap
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from twinspan.instrumentation.frameworks.python.nodes import NodeSpec, declared_nodes, spec_of

Sources = frozenset[str]
_NOBODY: Final[Sources] = frozenset()
_PASSES: Final = 2
"""A value may travel backwards through a loop once."""

_MOST_HELPERS: Final = 50

_AGENTS: Final = frozenset({"agents", "pydantic_ai", "crewai", "autogen_agentchat"})
"""Packages whose agents are nodes of the pipelines that run them."""

_RUNS: Final = frozenset(
    {
        *("run", "run_sync", "run_stream", "run_streamed", "iter", "invoke", "ainvoke"),
        *("stream", "astream", "kickoff", "kickoff_async", "akickoff"),
    }
)
"""Methods by which the frameworks run an agent."""

_ANY: Final = inspect.Signature()


@dataclass(slots=True)
class FlowGraph:
    """What a pipeline's text says.

    Attributes:
        nodes: its nodes, in the order in which they are named.
        edges: who may read whose answer.
        is_whole: whether the text could be read, and names all that it runs.
    """

    nodes: dict[str, NodeSpec] = field(default_factory=dict[str, NodeSpec])
    edges: dict[tuple[str, str], None] = field(default_factory=dict[tuple[str, str], None])
    is_whole: bool = True


def flow_graph(pipeline: Callable[..., Any]) -> FlowGraph:
    """Read a pipeline's function, and the functions of its module that it calls."""
    graph = FlowGraph()
    due, known = [inspect.unwrap(pipeline)], set[Callable[..., Any]]()
    while due and len(known) < _MOST_HELPERS:
        function = due.pop()
        if function in known:
            continue
        known.add(function)
        body = _body_of(function)
        if body is None:
            graph.is_whole = False
            continue
        reader = _Reader(graph, function)
        for _ in range(_PASSES):
            reader.statements(body)
        due += reader.helpers
    return graph


def _body_of(function: Callable[..., Any]) -> list[ast.stmt] | None:
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError):
        return None
    (defined,) = tree.body[:1]
    return (
        list(defined.body) if isinstance(defined, ast.FunctionDef | ast.AsyncFunctionDef) else None
    )


class _Reader:
    """One function, statement by statement: from whom each variable may come."""

    def __init__(self, graph: FlowGraph, function: Callable[..., Any]) -> None:
        self._graph = graph
        self._module = getattr(function, "__module__", None)
        closure = inspect.getclosurevars(function)
        self._names = {
            **vars(builtins),
            **getattr(function, "__globals__", {}),
            **closure.nonlocals,
        }
        self._from: dict[str, Sources] = {}
        self.helpers: list[Callable[..., Any]] = []

    # --- statements ---------------------------------------------------------------------------

    def statements(self, body: Iterable[ast.stmt]) -> None:
        for statement in body:
            self._statement(statement)

    def _statement(self, statement: ast.stmt) -> None:
        if isinstance(statement, ast.Assign):
            for target in statement.targets:
                self._assign(target, statement.value)
        elif isinstance(statement, ast.AnnAssign | ast.AugAssign) and statement.value is not None:
            self._assign(statement.target, statement.value)
        elif isinstance(statement, ast.For | ast.AsyncFor):
            self._bind(statement.target, self._sources(statement.iter))
        elif isinstance(statement, ast.With | ast.AsyncWith):
            for item in statement.items:
                sources = self._sources(item.context_expr)
                if item.optional_vars is not None:
                    self._bind(item.optional_vars, sources)
        else:
            for value in ast.iter_child_nodes(statement):
                if isinstance(value, ast.expr):
                    self._sources(value)
        for inner in ast.iter_child_nodes(statement):
            if isinstance(inner, ast.stmt):
                self._statement(inner)
            elif isinstance(inner, ast.ExceptHandler | ast.match_case):
                self.statements(inner.body)

    def _assign(self, target: ast.expr, value: ast.expr) -> None:
        called = value.value if isinstance(value, ast.Await) else value
        parts: Sequence[ast.expr] = ()
        if isinstance(called, ast.Tuple):
            parts = called.elts
        elif isinstance(called, ast.Call) and self._node(called.func) is None:
            parts = called.args  # a, b = gather(x(), y()): the answers come in the same order
        if isinstance(target, ast.Tuple) and len(target.elts) == len(parts):
            for each, part in zip(target.elts, parts, strict=True):
                self._bind(each, self._sources(part))
            return
        self._bind(target, self._sources(value))

    def _bind(self, target: ast.expr, sources: Sources) -> None:
        if isinstance(target, ast.Name):
            self._from[target.id] = self._from.get(target.id, _NOBODY) | sources
        elif isinstance(target, ast.Tuple | ast.List):
            for each in target.elts:
                self._bind(each, sources)
        elif isinstance(target, ast.Starred | ast.Attribute | ast.Subscript):
            self._bind(target.value, sources)

    # --- expressions --------------------------------------------------------------------------

    def _sources(self, expression: ast.expr) -> Sources:
        """From whom the value of an expression may come."""
        if isinstance(expression, ast.Name):
            return self._from.get(expression.id, _NOBODY)
        if isinstance(expression, ast.Call):
            return self._call(expression)
        if isinstance(expression, ast.NamedExpr):
            self._assign(expression.target, expression.value)
        if isinstance(expression, ast.Lambda):
            return self._sources(expression.body)
        if isinstance(expression, ast.IfExp):
            self._sources(expression.test)  # decides which value comes, and is not in it
            return self._sources(expression.body) | self._sources(expression.orelse)
        found = _NOBODY
        for inner in _inner(expression):
            if isinstance(inner, ast.comprehension):
                self._bind(inner.target, self._sources(inner.iter))
                found |= self._from_all(inner.ifs)
            elif isinstance(inner, ast.expr):
                found |= self._sources(inner)
        return found

    def _from_all(self, expressions: Iterable[ast.expr]) -> Sources:
        return _NOBODY.union(*(self._sources(each) for each in expressions))

    def _call(self, call: ast.Call) -> Sources:
        arguments = [*call.args, *(keyword.value for keyword in call.keywords)]
        # `submit(node, x)`, `partial(node, x)` and `map(node, xs)` call the node too.
        named = [self._node(each) for each in (call.func, *arguments)]
        read = self._from_all(arguments)
        called = [node for node in named if node is not None]
        if not called:
            return read | self._unknown_call(call, read)
        for node in called:
            self._graph.nodes.setdefault(node.name, node)
            sources = read | frozenset(node.reads)
            self._graph.edges.update(
                dict.fromkeys((source, node.name) for source in sorted(sources))
            )
        return frozenset(node.name for node in called)

    def _unknown_call(self, call: ast.Call, read: Sources) -> Sources:
        if isinstance(call.func, ast.Attribute):
            if call.func.attr in _RUNS:
                self._graph.is_whole = False  # an agent that no name here leads to
            if isinstance(call.func.value, ast.Name) and read:
                self._bind(call.func.value, read)  # results.append(answer)
            return self._sources(call.func.value)
        function = self._resolve(call.func)
        if inspect.isfunction(function) and function.__module__ == self._module:
            self.helpers.append(inspect.unwrap(function))
        return _NOBODY

    def _node(self, expression: ast.expr) -> NodeSpec | None:
        found = spec_of(self._resolve(expression)) or self._agent(expression)
        method = _method_of_self(expression)
        if found is None and method is not None:
            same = [spec for spec in declared_nodes() if spec.function.__name__ == method]
            found = same[0] if len(same) == 1 else None
        return found

    def _agent(self, expression: ast.expr) -> NodeSpec | None:
        """A framework's agent where it is run: `agent.run(x)`, `Runner.run(agent, x)`."""
        method = expression.attr if isinstance(expression, ast.Attribute) else None
        holder = expression.value if isinstance(expression, ast.Attribute) else expression
        found = self._resolve(holder)
        name = getattr(found, "name", None) or getattr(found, "role", None)
        if not isinstance(name, str) or type(found).__module__.partition(".")[0] not in _AGENTS:
            return None
        if method is not None and not callable(getattr(found, method, None)):
            return None
        return NodeSpec(name=name, reads=(), kind="agent", function=found, signature=_ANY)

    def _resolve(self, expression: ast.expr) -> Any:
        if isinstance(expression, ast.Name):
            return None if expression.id in self._from else self._names.get(expression.id)
        if isinstance(expression, ast.Attribute):
            base = self._resolve(expression.value)
            if inspect.ismodule(base) or inspect.isclass(base):
                return getattr(base, expression.attr, None)
        return None


def _inner(expression: ast.expr) -> list[ast.AST]:
    """What an expression is made of; a comprehension's variables before what uses them."""
    inner = list(ast.iter_child_nodes(expression))
    return sorted(inner, key=lambda each: not isinstance(each, ast.comprehension))


def _method_of_self(expression: ast.expr) -> str | None:
    if not isinstance(expression, ast.Attribute) or not isinstance(expression.value, ast.Name):
        return None
    return expression.attr if expression.value.id == "self" else None
