"""The report's facts as one JSON document."""

from __future__ import annotations

from typing import Any, Final

from twinspan.analysis.json_values import json_value
from twinspan.analysis.report.facts import Report

SCHEMA: Final = "twinspan.report/1"
"""Changes when a name or a meaning in the document does."""


def report_document(report: Report) -> dict[str, Any]:
    """Everything that the page says, as plain values; what is not known is null.

    Lists that may be long are `{"items": [...], "total": N}`.
    """
    document: dict[str, Any] = {"schema": SCHEMA, **json_value(report)}
    return document
