"""Stand-ins of outside services, strict about their protocols, with faults on demand.

Every provider keeps a ledger of what it was asked and what it answered: what a test counts.
"""

from apps.sandbox.fault import Fault, Faults
from apps.sandbox.ledger import Entry, Ledger
from apps.sandbox.stand_in import StandIn

__all__ = ["Entry", "Fault", "Faults", "Ledger", "StandIn"]
