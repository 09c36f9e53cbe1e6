"""Agents and configurations for tests of audits: real functions, real files."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from click.testing import CliRunner, Result

from twinspan.analysis.cli import main

TWO_CASES: Final = """
name = "two"
seed = 3
replicates = 8

[agent]
callable = "{agent}"
concurrency = 2
backoff = 0
{agent_extra}

[conditions]
template = "a {{age}}-year-old {{sex}}"
reference = {{ age = 40, sex = "man" }}
swaps = {{ sex = ["woman"] }}
controls = ["rerender", "sham_attribute"]

[[step]]
name = "decide"
instruction = "Approve?"
fields = {{ approve = "boolean" }}

[outcomes]
approved = "decide.approve"
{extra}
[[case]]
id = "a"
narrative = "The record is good."

[[case]]
id = "b"
narrative = "The record is mixed."
"""
"""Two cases, a swap, two controls, one step."""


def noisy(prompt: str, schema: Mapping[str, Any], seed: int) -> dict[str, bool]:
    """Approves by the record, with noise, whoever asks."""
    return {"approve": random.Random(seed).random() < (0.8 if "good" in prompt else 0.3)}


def biased(prompt: str, schema: Mapping[str, Any], seed: int) -> dict[str, bool]:
    """The same for men; women are declined."""
    return noisy(prompt, schema, seed) if "woman" not in prompt else {"approve": False}


def certain(prompt: str, schema: Mapping[str, Any], seed: int) -> dict[str, bool]:
    """Approves men and declines women, always."""
    return {"approve": "woman" not in prompt}


def constant(prompt: str, schema: Mapping[str, Any]) -> dict[str, bool]:
    """Approves everybody."""
    return {"approve": True}


def refusing(prompt: str, schema: Mapping[str, Any]) -> str:
    """Answers nothing that fits."""
    return "I cannot help with that."


def nothing(prompt: str, schema: Mapping[str, Any]) -> None:
    """Answers None."""
    return


def raising(prompt: str, schema: Mapping[str, Any]) -> dict[str, bool]:
    """Is not there."""
    raise ConnectionError("no route")


def write_audit(
    folder: Path,
    agent: Callable[..., Any] | str,
    *,
    extra: str = "",
    agent_extra: str = "",
    **edits: str,
) -> Path:
    """An audit's file for an agent of this module; `edits` replace texts in it."""
    place = agent if isinstance(agent, str) else f"audit_agents:{agent.__name__}"
    text = TWO_CASES.format(agent=place, extra=extra, agent_extra=agent_extra)
    for old, new in edits.items():
        text = text.replace(old, new)
    path = folder / "audit.toml"
    path.write_text(text, encoding="utf-8")
    return path


def run(*arguments: object) -> Result:
    """One command line."""
    return CliRunner().invoke(main, [str(each) for each in arguments])


def rows(*arguments: object, code: int | None = None) -> Any:
    """The JSON that a command prints."""
    result = run(*arguments, "--format", "json")
    assert code is None or result.exit_code == code, result.output
    return json.loads(result.stdout)


def two_steps(prompt: str, schema: Mapping[str, Any], seed: int) -> dict[str, bool]:
    """Calls women's cases minor, and admits nobody whose case is minor."""
    if "serious" in schema["properties"]:
        return {"serious": "woman" not in prompt}
    return {"admit": "serious yes" in prompt}


TWO_STEPS: Final = """
name = "loop"
seed = 1
replicates = 4

[agent]
callable = "audit_agents:two_steps"
backoff = 0

[conditions]
template = "a {age}-year-old {sex}"
reference = { age = 40, sex = "man" }
swaps = { sex = ["woman"] }
controls = ["rerender"]

[outcomes]
serious = "triage.serious"
admitted = "decide.admit"

[[step]]
name = "triage"
fields = { serious = "boolean" }

[[step]]
name = "decide"
fields = { admit = "boolean" }

[arms.free]

[arms.held.triage]
serious = true

[arms.flipped.triage]
serious = false

[[case]]
id = "a"
narrative = "Pain."

[[case]]
id = "b"
narrative = "Fever."

[[case]]
id = "c"
narrative = "A cough."
"""
"""Two steps of which the second reads only the first, free and with the first forced."""


def decided(prompt: str, schema: Mapping[str, Any]) -> dict[str, bool]:
    """Approves men whose record is good, always; women are declined."""
    return {"approve": "good" in prompt and "woman" not in prompt}


SIGNED_GATE: Final = """
[gate]
min_capability = 0.5
min_entropy = 0.001
min_band_straddling = 1

[[band]]
field = "decide.approve"
case = "a"
acceptable = { one_of = [true, false] }
provenance = "clinician-adjudicated"
adjudicated_by = ["a-1"]

[[adjudicator]]
pseudonym = "a-1"
specialty = "lending"
attestation_on_file = true
"""
"""A gate with a band for one case that stands behind nothing but its adjudicator."""
