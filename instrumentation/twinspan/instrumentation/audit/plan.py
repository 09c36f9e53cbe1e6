"""The plan of an audit: everything that is decided before there are results, and its hash.

Runs are made in a random order that the seed fixes. Within each replicate every case and
condition occurs once, so that a model that changes while an audit runs changes for all arms
alike. Each run is a context of its own: replicates answered together are one observation.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from random import Random
from types import MappingProxyType
from typing import Final

from twinspan.instrumentation.audit.cases import Case
from twinspan.instrumentation.audit.conditions import Condition, checked
from twinspan.instrumentation.audit.steps import Step, check_forced
from twinspan.instrumentation.audit.wording import Drawn, Wording
from twinspan.instrumentation.errors import ConfigurationError
from twinspan.instrumentation.hashing import canonical

Forced = Mapping[str, object]
"""Actions by step that are taken without asking the agent."""

Cell = tuple[str, str, str | None, int]
"""Case, condition, arm and replicate of a run."""

FORMAT: Final = "twinspan-audit-plan/1"
"""Changes whenever the same design would be hashed or ordered differently."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRun:
    """One run to make.

    Attributes:
        index: its place in the order, from 0.
        case_id: the case.
        condition_id: the condition.
        replicate: which repetition, from 1.
        text: what is said about the person; empty where nothing is.
        seed: for the model's sampling, where it takes one; differs between all runs.
        name: the name in the text, if one was drawn.
        template: which phrase it is, from 0.
        arm: whose actions are forced, in a plan with arms.
    """

    index: int
    case_id: str
    condition_id: str
    replicate: int
    text: str
    seed: int
    name: str | None = None
    template: int = 0
    arm: str | None = None

    @property
    def cell(self) -> Cell:
        """What the run is, whatever its place in the order."""
        return self.case_id, self.condition_id, self.arm, self.replicate


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AuditPlan:
    """A design, sealed by its hash.

    Attributes:
        name: the audit's name.
        cases: what is asked about, each id once.
        conditions: whom it is said to be about, with one reference.
        steps: the agent's decisions; empty where the agent has its own.
        outcomes: how outcomes follow from actions, as ``name=step.field <= 2``.
        replicates: runs of each case and condition.
        reference_replicates: runs of each case under the reference, where they differ.
        seed: of order, wording and runs.
        wording: phrases and names to draw from; None says everything as the condition has it.
        arms: forced actions by the arm's name, for interventional runs; every case, condition
            and replicate is run in every arm. An arm without actions forces nothing.
        shown_in: steps in which the descriptor is shown; None for all that ask.
        settings: model, temperature, tests, level: all that is fixed beforehand.

    Raises:
        ConfigurationError: there is no case, an id stands twice, the conditions are no design,
            there is no replicate, or forced actions make no experiment.

    >>> from twinspan.instrumentation.audit.clinical import standard_conditions
    >>> plan = AuditPlan(name="demo", cases=(Case(id="a", narrative="Chest pain."),),
    ...                  conditions=standard_conditions(), replicates=2, seed=7)
    >>> len(plan.runs()), plan.hash == plan.hash, len(plan.hash)
    (30, True, 64)
    >>> sorted(run.replicate for run in plan.runs()[:15]) == [1] * 15  # replicate by replicate
    True
    """

    name: str
    cases: tuple[Case, ...]
    conditions: tuple[Condition, ...]
    steps: tuple[Step, ...] = ()
    outcomes: tuple[str, ...] = ()
    replicates: int = 1
    reference_replicates: int | None = None
    seed: int = 0
    wording: Wording | None = None
    arms: Mapping[str, Forced] = field(default_factory=dict[str, "Forced"])
    shown_in: tuple[str, ...] | None = None
    settings: Mapping[str, object] = field(default_factory=dict[str, object])

    def __post_init__(self) -> None:
        for what, names in (
            ("cases", [case.id for case in self.cases]),
            ("steps", [step.name for step in self.steps]),
        ):
            ordered = sorted(names)
            if twice := [one for one, other in pairwise(ordered) if one == other]:
                raise ConfigurationError(f"two {what} are named {twice[0]!r}; name each once")
        if not self.cases or min(self.replicates, self._reference_replicates) < 1:
            raise ConfigurationError(
                f"an audit of {len(self.cases)} cases and {self.replicates} replicates has no "
                "runs; give one or more of each"
            )
        object.__setattr__(self, "conditions", checked(self.conditions))
        object.__setattr__(self, "settings", MappingProxyType(dict(self.settings)))
        object.__setattr__(self, "arms", MappingProxyType(dict(self.arms)))
        unforced: Forced = {}
        for forced in self.arms.values() if self.arms else (unforced,):
            if self.steps:
                check_forced(self.steps, forced, self.shown_in)
            elif forced or self.shown_in is not None:
                raise ConfigurationError(
                    "an agent that has its own steps cannot be forced or kept from its case; "
                    "list the steps, or leave the forced actions out"
                )

    @property
    def document(self) -> dict[str, object]:
        """The whole design as plain data: what the hash is of."""
        return {
            "format": FORMAT,
            "name": self.name,
            "cases": [case.as_dict() for case in self.cases],
            "conditions": [condition.as_dict() for condition in self.conditions],
            "steps": [step.as_dict() for step in self.steps],
            "outcomes": list(self.outcomes),
            "replicates": self.replicates,
            "reference_replicates": self._reference_replicates,
            "seed": self.seed,
            "wording": None if self.wording is None else self.wording.as_dict(),
            "settings": dict(self.settings),
            # Only where there are any: a design without them keeps its hash.
            **({"arms": {n: dict(f) for n, f in self.arms.items()}} if self.arms else {}),
            **({} if self.shown_in is None else {"shown_in": list(self.shown_in)}),
        }

    @property
    def hash(self) -> str:
        """SHA-256 of the design, 64 hex characters; equal designs have equal hashes."""
        return hashlib.sha256(canonical(self.document).encode()).hexdigest()

    def verify(self, expected: str) -> None:
        """Refuse results of another plan.

        Raises:
            ConfigurationError: the hash is not this plan's.
        """
        if expected != self.hash:
            raise ConfigurationError(
                f"the results are of plan {expected[:12]}..., this is {self.hash[:12]}...; "
                "analyse them with the plan that they were made with"
            )

    def runs(self) -> tuple[PlannedRun, ...]:
        """All runs in their random order; the same for the same plan."""
        return tuple(self._ordered())

    def _ordered(self) -> Iterator[PlannedRun]:
        order = Random(f"{self.seed}/order")
        index = 0
        for replicate in range(1, max(self.replicates, self._reference_replicates) + 1):
            block = [
                (case, condition, arm)
                for case in self.cases
                for condition in self.conditions
                for arm in self.arms or (None,)
                if replicate <= self._replicates_of(condition)
            ]
            order.shuffle(block)
            for case, condition, arm in block:
                yield self._run(index, case, condition, replicate, arm)
                index += 1

    def _run(
        self, index: int, case: Case, condition: Condition, replicate: int, arm: str | None
    ) -> PlannedRun:
        # The wording of a run does not depend on which other runs there are.
        place = f"{self.seed}/{case.id}/{condition.id}/{replicate}"
        place += "" if arm is None else f"/{arm}"
        names = f"{self.seed}/{case.id}/{condition.id}/{arm or ''}/names"
        drawn = self._say(condition, Random(f"{place}/wording"), (names, replicate - 1))
        return PlannedRun(
            index=index,
            case_id=case.id,
            condition_id=condition.id,
            replicate=replicate,
            text=drawn.text,
            seed=Random(f"{place}/run").getrandbits(31),
            name=drawn.name,
            template=drawn.template,
            arm=arm,
        )

    def _say(self, condition: Condition, rng: Random, dealt: tuple[str, int]) -> Drawn:
        if self.wording is None:
            return Drawn(text=condition.text, template=0, name=None)
        return self.wording.draw(condition, rng, dealt=dealt)

    def _replicates_of(self, condition: Condition) -> int:
        return self._reference_replicates if condition.is_reference else self.replicates

    @property
    def _reference_replicates(self) -> int:
        return self.replicates if self.reference_replicates is None else self.reference_replicates
