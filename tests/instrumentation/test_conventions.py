"""The names are an interface: recorded files and users' queries depend on them."""

from __future__ import annotations

from twinspan.instrumentation import conventions as c

PINNED = """
twinspan.schema.version twinspan.run.id twinspan.audit.seq twinspan.audit.id twinspan.audit.name
twinspan.audit.mode twinspan.audit.axes twinspan.audit.case.count twinspan.audit.replicate.count
twinspan.audit.seed twinspan.audit.plan.hash twinspan.audit.verdict
twinspan.audit.expected.probe.count twinspan.audit.observed.probe.count twinspan.audit.prev_hash
twinspan.audit.hash twinspan.audit.writer test.suite.name test.suite.run.status
gen_ai.operation.name gen_ai.agent.name gen_ai.workflow.name gen_ai.conversation.id
twinspan.run.arm twinspan.graph.id twinspan.graph.nodes twinspan.graph.edges
twinspan.graph.conditional_edges twinspan.graph.cyclic twinspan.network.reduction
twinspan.breaker.threshold.enter twinspan.breaker.threshold.exit twinspan.run.outcome
twinspan.network.score twinspan.breaker.state.to twinspan.run.node.count
twinspan.run.probe.count twinspan.run.superstep.count error.type twinspan.node.id
twinspan.node.kind twinspan.node.task.id twinspan.node.attempt twinspan.node.parent.task.ids
twinspan.superstep.index twinspan.superstep.scope twinspan.node.weight
twinspan.node.weight.method twinspan.node.outcome twinspan.node.input.hash
twinspan.node.output.hash twinspan.node.output.size twinspan.probe.decision
twinspan.probe.sampling.rate gen_ai.input.messages gen_ai.output.messages
gen_ai.evaluation.name gen_ai.evaluation.score.value gen_ai.evaluation.score.label
twinspan.probe.set.id twinspan.probe.axis twinspan.probe.baseline.span_id
twinspan.probe.estimator twinspan.probe.estimator.version
twinspan.divergence.counterfactual.mean twinspan.divergence.null.mean
twinspan.divergence.null.stddev twinspan.divergence.null.count twinspan.floor.value
twinspan.floor.quantile twinspan.floor.source twinspan.effect.value twinspan.effect.method
twinspan.effect.ci.lower twinspan.effect.ci.upper twinspan.effect.ci.level
twinspan.effect.p_value twinspan.effect.undefined.reason twinspan.probe.call.count
gen_ai.usage.input_tokens gen_ai.usage.output_tokens twinspan.probe.outcome twinspan.probe.arm
twinspan.probe.replicate twinspan.perturbation.kind twinspan.perturbation.id
twinspan.perturbation.targets twinspan.perturbation.edit.count twinspan.perturbation.from
twinspan.perturbation.to twinspan.probe.divergence twinspan.probe.flip
twinspan.probe.input.hash twinspan.probe.output.hash twinspan.probe.cache.hit
gen_ai.request.model gen_ai.request.temperature gen_ai.request.seed twinspan.superstep.nodes
twinspan.network.score.raw twinspan.network.score.fast twinspan.network.score.slow
twinspan.network.step twinspan.network.observed.weight twinspan.breaker.state.from
twinspan.breaker.decision twinspan.breaker.reason twinspan.breaker.margin
twinspan.breaker.edge twinspan.breaker.payload.hash twinspan.breaker.enforced
twinspan.intervention.id twinspan.intervention.strategy twinspan.intervention.trigger.task.id
twinspan.intervention.round twinspan.intervention.score.before
twinspan.intervention.score.after twinspan.intervention.outcome twinspan.intervention.role
twinspan.link.relation twinspan.link.edge twinspan.truncated
""".split()


def test_every_pinned_name_is_in_the_catalogue() -> None:
    """Renaming one of these breaks files that are on disk already."""
    assert sorted(set(PINNED) - set(c.CATALOGUE)) == []


def test_every_constant_is_in_the_catalogue_and_the_reverse() -> None:
    """No name is spelled beside the catalogue."""
    constants = {
        value
        for name, value in vars(c).items()
        if name.isupper() and isinstance(value, str) and "." in value
    } - {c.ACTION_PREFIX, c.EVENT_TRANSITION, c.EVENT_EVALUATION, c.SCOPE}
    assert constants == set(c.CATALOGUE)


def test_columns_are_unique_and_need_no_quotes() -> None:
    """Two names that fold onto one column would overwrite each other in the record."""
    columns = [attribute.column for attribute in c.PROMOTED]
    assert len(columns) == len(set(columns))
    assert all(column.isidentifier() and column.islower() for column in columns)


def test_our_own_names_stay_in_our_namespace() -> None:
    """Keys under another convention's namespace are only those it defines."""
    foreign = {name for name in c.CATALOGUE if not name.startswith("twinspan.")}
    assert all(name.startswith(("gen_ai.", "error.", "test.")) for name in foreign)


def test_every_name_says_what_it_means() -> None:
    """The documentation's table is made from these."""
    assert all(len(attribute.meaning) > 5 for attribute in c.CATALOGUE.values())
    assert all(name == attribute.name for name, attribute in c.CATALOGUE.items())


def test_arrays_have_plural_content_and_types_are_known() -> None:
    """Types are those that a Parquet column has."""
    kinds = {attribute.type for attribute in c.CATALOGUE.values()}
    assert kinds <= {"string", "int", "double", "boolean", "string[]", "int[]", "double[]"}
