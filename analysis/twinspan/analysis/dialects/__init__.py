"""The forms in which spans come, one reader a module.

A reader turns files into the rows of the record. What the attributes of another instrumentation
mean is a second question, answered per dialect on the rows that came in.
"""

from __future__ import annotations

from typing import Final

from twinspan.analysis.dialects.base import Problem, Problems, Reader, RowSink
from twinspan.analysis.dialects.fairmedagent import FairMedAgent
from twinspan.analysis.dialects.otlp_json import OtlpJson
from twinspan.analysis.dialects.otlp_protobuf import OtlpProtobuf

__all__ = ["READERS", "Problem", "Problems", "Reader", "RowSink"]

READERS: Final[tuple[Reader, ...]] = (OtlpProtobuf(), OtlpJson(), FairMedAgent())
"""Every reader of files that are not tables, in the order in which they are asked."""
