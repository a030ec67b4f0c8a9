"""Whether the customer of an invoice was told of it: what the broker forgets is not told twice."""

from typing import Final

from alembic import op

revision = "0006"
down_revision = "0005"

_OPEN: Final = "status IN ('pending', 'sending') OR (status = 'issued' AND pdf_key IS NULL)"
_NOW_OPEN: Final = (
    "status IN ('pending', 'sending') "
    "OR (status = 'issued' AND (pdf_key IS NULL OR announced_at IS NULL))"
)
_INDEX: Final = (
    "CREATE INDEX invoices_left_behind ON campotech.invoices ((coalesce(looked_at, created_at)))"
)


def upgrade() -> None:
    """Customers of invoices that have their PDF were told."""
    op.execute("ALTER TABLE campotech.invoices ADD COLUMN announced_at timestamptz")
    op.execute("UPDATE campotech.invoices SET announced_at = issued_at WHERE pdf_key IS NOT NULL")
    op.execute("DROP INDEX campotech.invoices_left_behind")
    op.execute(f"{_INDEX} WHERE {_NOW_OPEN}")


def downgrade() -> None:
    """Remove it."""
    op.execute("DROP INDEX campotech.invoices_left_behind")
    op.execute("ALTER TABLE campotech.invoices DROP COLUMN announced_at")
    op.execute(f"{_INDEX} WHERE {_OPEN}")
