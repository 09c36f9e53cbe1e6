"""Trajectories: what an agent did in one run of a case, step by step.

FairMedAgent's two forms are read and written: the library's, a list of steps whose results are
nested under ``results``, and the released files', a dictionary of actions with flat results.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, Literal, cast

from twinspan.instrumentation.errors import ConfigurationError

Action = Mapping[str, object]
ResultsForm = Literal["flat", "nested"]

_CASE_NAMES: Final = ("case_id", "vignette_id")
_RESULTS: Final = "results"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trajectory:
    """One run of one case under one condition.

    Attributes:
        case_id: the case.
        condition_id: the condition.
        actions: by step, in the order of the steps; results of orders are flat.
        replicate: which repetition, from 1; None if nobody numbered it.
        model: which model answered.
        scaffold: how it was prompted.
        complete: whether every step was answered.
        model_calls: calls that were made; None if not recorded.
        details: what else is recorded, such as ``forced_steps`` or ``seed``.

    Raises:
        ConfigurationError: the case or the condition is blank.

    >>> run = Trajectory(case_id="v1", condition_id="ref", actions={"triage": {"esi_acuity": 2}})
    >>> run.get("triage", "esi_acuity"), run.get("reassess", "admit")
    (2, None)
    """

    case_id: str
    condition_id: str
    actions: Mapping[str, Action]
    replicate: int | None = None
    model: str | None = None
    scaffold: str | None = None
    complete: bool = True
    model_calls: int | None = None
    details: Mapping[str, object] = field(default_factory=dict[str, object])

    def __post_init__(self) -> None:
        if not self.case_id.strip() or not self.condition_id.strip():
            raise ConfigurationError(
                f"a trajectory is of case {self.case_id!r} and condition {self.condition_id!r}; "
                "name both"
            )
        frozen = {step: MappingProxyType(dict(action)) for step, action in self.actions.items()}
        object.__setattr__(self, "actions", MappingProxyType(frozen))
        object.__setattr__(self, "details", MappingProxyType(dict(self.details)))

    def get(self, step: str, name: str) -> object:
        """A field of a step's action; None where there is none."""
        return self.actions.get(step, {}).get(name)

    @classmethod
    def from_mapping(
        cls, entry: Mapping[str, object], *, replicate: int | None = None
    ) -> Trajectory:
        """A trajectory from either of FairMedAgent's forms, or from ours.

        Args:
            entry: with ``vignette_id`` or ``case_id``, ``condition_id``, and ``actions`` or
                ``steps``.
            replicate: its number, where the entry has none.

        Raises:
            ConfigurationError: the case, the condition or the actions are missing.

        >>> nested = {"vignette_id": "v1", "condition_id": "ref", "steps": [
        ...     {"step": "results", "action": {"results": {"ECG": "normal"}}, "model_calls": 0}]}
        >>> Trajectory.from_mapping(nested).get("results", "ECG")
        'normal'
        """
        given = dict(entry)
        case = next((given.pop(name) for name in _CASE_NAMES if given.get(name)), None)
        condition = given.pop("condition_id", None)
        steps = given.pop("steps", None)
        actions = given.pop("actions", None)
        if actions is None and isinstance(steps, Sequence):
            actions, calls = _from_steps(cast("Sequence[Mapping[str, Any]]", steps))
            given.setdefault("model_calls", calls)
        if case is None or condition is None or not isinstance(actions, Mapping):
            raise ConfigurationError(
                "a trajectory lacks its case, its condition or its actions; give vignette_id, "
                "condition_id and actions"
            )
        numbered = given.pop("replicate", None)
        return cls(
            case_id=str(case),
            condition_id=str(condition),
            actions=_flat(cast("Mapping[str, Any]", actions)),
            replicate=cast("int | None", numbered) if numbered is not None else replicate,
            model=cast("str | None", given.pop("model", None)),
            scaffold=cast("str | None", given.pop("scaffold", None)),
            complete=bool(given.pop("complete", True)),
            model_calls=cast("int | None", given.pop("model_calls", None)),
            details=given,
        )

    def as_dict(self, *, results: ResultsForm = "flat") -> dict[str, object]:
        """Under FairMedAgent's names.

        Args:
            results: ``flat`` as in its released files, ``nested`` as its library has them.
        """
        actions: dict[str, object] = {step: dict(action) for step, action in self.actions.items()}
        if results == "nested" and _RESULTS in actions:
            actions[_RESULTS] = {_RESULTS: actions[_RESULTS]}
        return {
            "vignette_id": self.case_id,
            "condition_id": self.condition_id,
            "model": self.model,
            "scaffold": self.scaffold,
            "model_calls": self.model_calls,
            "complete": self.complete,
            "replicate": self.replicate,
            "actions": actions,
            **self.details,
        }


def read_trajectories(
    document: Mapping[str, object], *, replicate: int | None = None
) -> tuple[Trajectory, ...]:
    """The complete trajectories of a file's document.

    Args:
        document: with a list ``trajectories``; entries that say they are not complete are left
            out.
        replicate: the file's number, for entries that have none.

    Raises:
        ConfigurationError: there is no such list, or an entry is no trajectory.

    >>> read_trajectories({"model": "m", "trajectories": [
    ...     {"vignette_id": "v1", "condition_id": "ref", "actions": {}, "complete": False}]})
    ()
    """
    listed = document.get("trajectories")
    if not isinstance(listed, Sequence):
        raise ConfigurationError(
            "the document has no list 'trajectories'; give one of FairMedAgent"
        )
    entries = cast("Iterable[Mapping[str, object]]", listed)
    shared = {"model": document["model"]} if document.get("model") else {}
    return tuple(
        Trajectory.from_mapping({**shared, **entry}, replicate=replicate)
        for entry in entries
        if entry.get("complete", True)
    )


def _from_steps(steps: Sequence[Mapping[str, Any]]) -> tuple[dict[str, Any], int]:
    actions: dict[str, Any] = {str(step["step"]): step.get("action") for step in steps}
    return actions, sum(int(step.get("model_calls", 0)) for step in steps)


def _flat(actions: Mapping[str, Any]) -> dict[str, Action]:
    """The actions, results of orders one level up where they are nested."""
    flat = {
        str(step): cast("Action", action)
        for step, action in actions.items()
        if isinstance(action, Mapping)
    }
    nested = flat.get(_RESULTS, {}).get(_RESULTS)
    if isinstance(nested, Mapping):
        flat[_RESULTS] = cast("Action", nested)
    return flat
