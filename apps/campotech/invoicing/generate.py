"""Makes the invoice of a completed job, with the job that asks for its CAE, in one transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from apps.campotech.invoicing.bill import NotBillable
from apps.campotech.messages.dispatched import InvoiceGenerate
from apps.campotech.tiers import BATCH
from faena import Discard, Job
from faena.pg import Connection

if TYPE_CHECKING:
    from apps.campotech.system import System


class Generating:
    """The task `generate` of the queue `invoice.pdf`."""

    def __init__(self, system: System) -> None:
        self._system = system
        task = system.queues["invoice.pdf"].task(name="generate", retry=BATCH.retry(system.pace))
        self.generate = task(system.pg.effect(self._generate))

    async def _generate(self, transaction: Connection, asked: InvoiceGenerate, job: Job) -> str:
        """The id of the invoice, a new one or the one that the job has."""
        try:
            organization, of_job = UUID(asked.organization_id), UUID(asked.job_id)
        except ValueError:
            raise Discard("organizationId and jobId must be UUIDs") from None
        if job.tenant not in (None, str(organization)):
            raise Discard(f"no job {of_job} in this organisation")
        try:
            return str(await self._system.billing.bill_job(transaction, organization, of_job))
        except NotBillable as error:
            raise Discard(str(error)) from None
