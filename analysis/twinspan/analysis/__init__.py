"""What reads recorded spans: SQL views, floors, the audit trail, the command line."""

from typing import TYPE_CHECKING

from twinspan.instrumentation.lazy import lazy_names

if TYPE_CHECKING:
    from twinspan.analysis.store import Store, open_store
    from twinspan.analysis.trail import AuditTrail

__all__ = ["AuditTrail", "Store", "open_store"]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "store": (
            "Store",
            "open_store",
        ),
        "trail": ("AuditTrail",),
    },
)
