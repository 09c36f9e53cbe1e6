"""What a record has to say against its agents: reactions, breaches, interventions.

A finding is one span that somebody has to look at. Scores within the floor, decisions to proceed
and probe sets without a score are none; they are listed on request, as what was looked at.
"""

from twinspan.analysis.findings.gathering import findings
from twinspan.analysis.findings.measured import ABOVE_FLOOR
from twinspan.analysis.findings.records import Finding, Step

__all__ = ["ABOVE_FLOOR", "Finding", "Step", "findings"]
