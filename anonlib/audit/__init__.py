"""Independent verification of a released table: what the kernels promise is counted again, in
Spark, on the released values, with code of its own.

Nothing here imports kernels, partitioners, recoders or blocks.
"""

from anonlib.audit.parts import by_parts
from anonlib.audit.report import AuditReport, AuditSpec, Persons, Verdict
from anonlib.audit.run import audit

__all__ = ["AuditReport", "AuditSpec", "Persons", "Verdict", "audit", "by_parts"]
