"""What a record has to say against its agents: reactions, breaches, repairs, disparities.

A finding is something that somebody has to look at: a span, or what many audited runs say. Scores
within the floor, decisions to proceed and probe sets without a score are none; they are listed on
request, as what was looked at.
"""

from twinspan.analysis.findings.disparities import AuditQuestion, audit_answer
from twinspan.analysis.findings.gathering import findings
from twinspan.analysis.findings.measured import ABOVE_FLOOR
from twinspan.analysis.findings.records import Finding, Step

__all__ = ["ABOVE_FLOOR", "AuditQuestion", "Finding", "Step", "audit_answer", "findings"]
