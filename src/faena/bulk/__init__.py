"""Bulk actions: one thing that is done to many jobs, by and by, whoever carries it out."""

from faena.bulk.bulks import Bulks
from faena.bulk.carrier import BulkCarrier

__all__ = ["BulkCarrier", "Bulks"]
