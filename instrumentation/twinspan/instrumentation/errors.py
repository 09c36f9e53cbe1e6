"""Every error twinspan raises, in one tree.

::

    TwinspanError
    ├── ConfigurationError (ValueError)     an option or argument has no meaning
    │   ├── InvalidOption                   an option's value is of no use
    │   ├── UnknownAxis                     an axis name nobody defined
    │   ├── UnsuitableValue (TypeError)     a value of a kind that a question has no answer for
    │   ├── MissingExtra                    an optional package is not installed
    │   └── ProgramNotFound                 a script or module that is to be run is not there
    ├── PerturbationError (ValueError)      a payload or vocabulary cannot be swapped
    ├── EstimatorError (ValueError)         samples cannot be scored
    │   ├── InsufficientSamples             an arm is empty or too small
    │   ├── NonFiniteSample                 NaN or infinity in a sample
    │   ├── InvalidMeasurement              a number that no probe can have measured
    │   └── MixedEstimators                 two scales in one accumulation
    ├── TopologyError (ValueError)          a graph cannot be weighed
    │   └── UnknownNode (KeyError)          a node the graph does not have
    ├── ClientError                         a model call failed
    │   ├── ClientTimeout
    │   ├── ServerUnreachable               no connection, or one that broke
    │   ├── RequestRejected                 the server answered with an error
    │   ├── NotServed                       the server lacks a capability
    │   └── MalformedReply
    ├── ProbeError                          a probe could not be completed
    │   └── IncompletePrior                 fewer synthetic payloads than were asked for
    ├── AuditStopped                        an audited agent fails every run
    ├── SideEffectBlocked (RuntimeError)    a probe tried to run a tool that is not marked safe
    ├── RecordError                         spans cannot be written
    │   └── NotSent                         a server did not take them
    ├── SourceError                         spans cannot be read
    │   └── NoSpans                         a readable place that holds none
    ├── QueryError                          a user's SQL was refused or failed
    └── BiasHalt (RuntimeError)             the halt that the user switched on

A condition is a class, the numbers are attributes, the message ends with the cure. The
library raises; the command line translates.
"""

from __future__ import annotations

from collections.abc import Mapping


class TwinspanError(Exception):
    """Base of everything twinspan raises on purpose."""


class ConfigurationError(TwinspanError, ValueError):
    """An option or argument has no meaning; the message says which would."""


class InvalidOption(ConfigurationError):
    """An option has a value that is of no use.

    Attributes:
        option: its name.
        value: the value.

    >>> InvalidOption("mode", "stop", cure="use one of shadow, halt, repair").args[0]
    "mode is 'stop'; use one of shadow, halt, repair"
    """

    def __init__(self, option: str, value: object, *, cure: str, joined: str = "; ") -> None:
        self.option = option
        self.value = value
        super().__init__(f"{option} is {value!r}{joined}{cure}")


class UnknownAxis(ConfigurationError):
    """An axis was named that no axis file or argument defines.

    >>> UnknownAxis("gendr", known=("age", "gender")).args[0]
    "no axis is named 'gendr'; known axes: 'age', 'gender'"
    """

    def __init__(self, name: str, *, known: tuple[str, ...]) -> None:
        self.name = name
        self.known = known
        listed = ", ".join(repr(axis) for axis in known) or "none"
        super().__init__(f"no axis is named {name!r}; known axes: {listed}")


class UnsuitableValue(ConfigurationError, TypeError):
    """A value is of a kind that the question has no answer for.

    A ``TypeError`` as well: asking whether a yes or no lies between 1 and 5 is a mistake of the
    program, and no number would make it right.

    >>> UnsuitableValue("the action", True, cure="test the grade itself").args[0]
    'the action is True, a bool; test the grade itself'
    """

    def __init__(self, what: str, value: object, *, cure: str) -> None:
        self.what = what
        self.value = value
        super().__init__(f"{what} is {value!r}, a {type(value).__name__}; {cure}")


class MissingExtra(ConfigurationError, ImportError):
    """An optional package is needed; the message names the extra that brings it.

    >>> MissingExtra("langgraph", extra="langgraph").args[0]
    "'langgraph' is not installed; install it with: pip install 'twinspan[langgraph]'"
    """

    def __init__(self, package: str, *, extra: str) -> None:
        self.package = package
        self.extra = extra
        super().__init__(
            f"{package!r} is not installed; install it with: pip install 'twinspan[{extra}]'"
        )


class ProgramNotFound(ConfigurationError):
    """A script or module that is to be run is not there.

    >>> ProgramNotFound("ap.py").args[0]
    "there is no program 'ap.py'; name a Python file, or a module with -m"
    """

    def __init__(self, program: str) -> None:
        self.program = program
        super().__init__(
            f"there is no program {program!r}; name a Python file, or a module with -m"
        )


class PerturbationError(TwinspanError, ValueError):
    """A payload or vocabulary cannot be perturbed as asked."""


class EstimatorError(TwinspanError, ValueError):
    """Samples cannot be scored by the chosen estimator."""


class InsufficientSamples(EstimatorError):
    """An arm has fewer samples than the estimator needs.

    >>> InsufficientSamples("counterfactual", count=1, needed=2).args[0]
    "the 'counterfactual' arm has 1 sample(s), at least 2 are needed; draw more samples"
    """

    def __init__(self, arm: str, *, count: int, needed: int) -> None:
        self.arm = arm
        self.count = count
        self.needed = needed
        super().__init__(
            f"the {arm!r} arm has {count} sample(s), at least {needed} are needed; "
            "draw more samples"
        )


class NonFiniteSample(EstimatorError):
    """A sample holds NaN or an infinity, so no distance to it exists."""

    def __init__(self, arm: str, *, index: int) -> None:
        self.arm = arm
        self.index = index
        super().__init__(
            f"sample {index} of the {arm!r} arm is not finite; "
            "repair the embedder or drop the sample as an error outcome"
        )


class InvalidMeasurement(EstimatorError):
    """A number was to be accumulated that no probe can have measured.

    >>> InvalidMeasurement("magnitude", of="triage", value=float("nan"), must="be finite").args[0]
    "the magnitude of 'triage' is nan; it must be finite, leave the node out if..."
    """

    def __init__(self, quantity: str, *, of: str, value: float, must: str) -> None:
        self.quantity = quantity
        self.of = of
        self.value = value
        super().__init__(
            f"the {quantity} of {of!r} is {value!r}; it must {must}, "
            "leave the node out if it was not measured"
        )


class MixedEstimators(EstimatorError):
    """Scores of different estimators or scales were to be combined.

    >>> MixedEstimators("action", "embedding").args[0]
    "scores of 'action' and 'embedding' have no common scale; accumulate them apart"
    """

    def __init__(self, first: str, second: str) -> None:
        self.first = first
        self.second = second
        super().__init__(
            f"scores of {first!r} and {second!r} have no common scale; accumulate them apart"
        )


class TopologyError(TwinspanError, ValueError):
    """A graph cannot be ordered or weighed."""


class UnknownNode(TopologyError, KeyError):
    """A node was named that the graph does not have.

    >>> print(UnknownNode("reveiwer", known=("planner", "reviewer")))
    the graph has no node 'reveiwer'; its nodes: 'planner', 'reviewer'
    """

    def __init__(self, node: str, *, known: tuple[str, ...]) -> None:
        self.node = node
        self.known = known
        listed = ", ".join(repr(name) for name in known[:20])
        self.message = f"the graph has no node {node!r}; its nodes: {listed}"
        super().__init__(self.message)

    def __str__(self) -> str:
        return self.message


def _tries(count: int) -> str:
    return "try" if count == 1 else "tries"


class ClientError(TwinspanError):
    """A model or embedding call failed."""


class ClientTimeout(ClientError):
    """A model call did not answer in time."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        super().__init__(
            f"no answer within {seconds:g} s; raise the timeout or lower the concurrency"
        )


class ServerUnreachable(ClientError):
    """No connection to a model server came about, or it broke before an answer was complete.

    >>> ServerUnreachable("http://localhost:8000/v1", cause="ConnectError", attempts=3).args[0]
    'no answer from http://localhost:8000/v1 (ConnectError) in 3 tries; check the base URL, ...'
    """

    def __init__(self, server: str, *, cause: str, attempts: int) -> None:
        self.server = server
        self.cause = cause
        self.attempts = attempts
        super().__init__(
            f"no answer from {server} ({cause}) in {attempts} {_tries(attempts)}; "
            "check the base URL, the server and the proxy"
        )


class RequestRejected(ClientError):
    """A model server answered a request with an error.

    Attributes:
        status: the HTTP status.
        code: the server's own word for the error, if it gave a plain one.
        fields: fields of the request that the server's explanation names. The explanation
            itself is not kept, since servers repeat prompts in it.
        attempts: tries that were made.

    >>> RequestRejected(404, code="model_not_found", cure="check the model's name").args[0]
    "the server answered 404 (model_not_found) in 1 try; check the model's name"
    """

    def __init__(
        self,
        status: int,
        *,
        code: str | None = None,
        fields: frozenset[str] = frozenset(),
        attempts: int = 1,
        cure: str,
    ) -> None:
        self.status = status
        self.code = code
        self.fields = fields
        self.attempts = attempts
        named = f" ({code})" if code else ""
        super().__init__(
            f"the server answered {status}{named} in {attempts} {_tries(attempts)}; {cure}"
        )


class NotServed(ClientError):
    """A model server or client does not offer what a call needs.

    >>> NotServed("top_logprobs", cure="use method='sampled'").args[0]
    "'top_logprobs' is not served here; use method='sampled'"
    """

    def __init__(self, capability: str, *, cure: str) -> None:
        self.capability = capability
        super().__init__(f"{capability!r} is not served here; {cure}")


class MalformedReply(ClientError):
    """A model answered something its protocol does not allow."""


class ProbeError(TwinspanError):
    """A probe set could not be completed; the message says how far it came."""


class IncompletePrior(ProbeError):
    """A synthetic prior came out smaller than was asked for.

    Attributes:
        prior: what there is, with its counts; use it only if a smaller prior will do.

    >>> print(IncompletePrior(None, accepted=2, requested=8, calls=24, reasons={"empty": 22}))
    2 of 8 synthetic payloads after 24 call(s) (empty: 22); raise max_calls, ...
    """

    def __init__(
        self,
        prior: object,
        *,
        accepted: int,
        requested: int,
        calls: int,
        reasons: Mapping[str, int],
    ) -> None:
        self.prior = prior
        self.accepted = accepted
        self.requested = requested
        self.calls = calls
        self.reasons = dict(reasons)
        told = ", ".join(f"{reason}: {count}" for reason, count in sorted(self.reasons.items()))
        super().__init__(
            f"{accepted} of {requested} synthetic payloads after {calls} call(s)"
            + (f" ({told})" if told else "")
            + "; raise max_calls, or take what there is from this error's prior"
        )


class AuditStopped(TwinspanError):
    """An audited agent raised in so many runs in a row that going on would be waste.

    Attributes:
        in_a_row: runs that failed.
        cause: type of the last error.
        error: the last error itself; its text may be content and is not in the message.

    >>> AuditStopped(10, cause="ConnectionError").args[0]
    'the agent failed 10 runs in a row (ConnectionError); mend it and start the same audit again...'
    """

    def __init__(self, in_a_row: int, *, cause: str, error: BaseException | None = None) -> None:
        self.in_a_row = in_a_row
        self.cause = cause
        self.error = error
        super().__init__(
            f"the agent failed {in_a_row} runs in a row ({cause}); mend it and start the same "
            "audit again: what is recorded is kept"
        )


class SideEffectBlocked(TwinspanError, RuntimeError):
    """A probe tried to run a tool that is not marked safe to run again.

    >>> SideEffectBlocked("send_email").args[0]
    "tool 'send_email' was blocked inside a probe; list it in safe_tools if it may run again"
    """

    def __init__(self, tool: str) -> None:
        self.tool = tool
        super().__init__(
            f"tool {tool!r} was blocked inside a probe; list it in safe_tools if it may run again"
        )


class RecordError(TwinspanError):
    """Spans cannot be written where they were to go."""


class NotSent(RecordError):
    """Spans did not reach the server that they were sent to.

    >>> NotSent("http://localhost:4318/v1/traces", cause="connection refused").args[0]
    'spans were not taken by http://localhost:4318/v1/traces (connection refused); start ...'
    """

    def __init__(self, server: str, *, cause: str) -> None:
        self.server = server
        self.cause = cause
        super().__init__(
            f"spans were not taken by {server} ({cause}); start the server, or name its "
            "OTLP/HTTP address with --endpoint"
        )


class SourceError(TwinspanError):
    """A source of spans cannot be read."""


class NoSpans(SourceError):
    """A source was read and holds no spans."""

    def __init__(self, source: str, *, hint: str = "") -> None:
        self.source = source
        super().__init__(f"no spans in {source!r}" + (f"; {hint}" if hint else ""))


class QueryError(TwinspanError):
    """A query over the views was refused or failed."""


class UnknownRun(TwinspanError, LookupError):
    """A run was asked for that is not there.

    >>> UnknownRun("r1", where="'spans'").args[0]
    "there is no run 'r1' in 'spans'; `twinspan sql SPANS 'SELECT run_id FROM runs'` lists them"
    """

    def __init__(self, run_id: str, *, where: str) -> None:
        self.run_id = run_id
        super().__init__(
            f"there is no run {run_id!r} in {where}; "
            "`twinspan sql SPANS 'SELECT run_id FROM runs'` lists them"
        )


class NothingToReset(TwinspanError):
    """A run that is not stopped was to be reset.

    Attributes:
        state: where the run stands.
    """

    def __init__(self, *, state: str) -> None:
        self.state = state
        super().__init__(
            f"the run is not stopped, its state is {state!r}; only a run in intervention, recovery "
            "or escalated can be reset"
        )


class BiasHalt(TwinspanError, RuntimeError):
    """A biased payload was stopped at an edge, as the user asked.

    A ``RuntimeError`` on purpose: agent frameworks do not retry those by default.

    Attributes:
        run_id: the run that was halted.
        edge: the edge that was cut, ``source->target``.
        reason: the breaker's reason, from its closed list.
        frozen_payload: a deep copy of what the consumer would have read; never exported.
        tried: the repairs that were tried, in order: strategy, outcome and its reason, delta
            before and after, and the payload that was not let pass; never exported.
    """

    def __init__(
        self,
        *,
        run_id: str,
        edge: str,
        reason: str,
        frozen_payload: object = None,
        tried: tuple[Mapping[str, object], ...] = (),
    ) -> None:
        self.run_id = run_id
        self.edge = edge
        self.reason = reason
        self.frozen_payload = frozen_payload
        self.tried = tried
        super().__init__(
            f"run {run_id} was halted at {edge}: {reason}; "
            "read the frozen payload on this error, repair it, or run in shadow mode"
        )
