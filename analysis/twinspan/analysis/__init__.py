"""What reads recorded spans: SQL views, floors, the audit trail, the command line."""

from twinspan.analysis.store import Store, open_store
from twinspan.analysis.trail import AuditTrail

__all__ = ["AuditTrail", "Store", "open_store"]
