"""What the tax office was told of a receiver, and when an invoice was last looked after."""

from typing import Final

from alembic import op

revision = "0004"
down_revision = "0003"

_OPEN: Final = "status IN ('pending', 'sending') OR (status = 'issued' AND pdf_key IS NULL)"


def upgrade() -> None:
    """Add the columns, and an index of the invoices that somebody must work on."""
    op.execute(
        """
        ALTER TABLE campotech.invoices
            ADD COLUMN sent_tax_id text,            -- of the customer, when the number was given
            ADD COLUMN sent_vat_condition smallint, -- NULL: there is no number yet
            ADD COLUMN looked_at timestamptz        -- when `find-pending-invoices` came by
        """
    )
    op.execute("DROP INDEX campotech.invoices_created_at_idx")
    op.execute(
        "CREATE INDEX invoices_left_behind ON campotech.invoices "
        f"((coalesce(looked_at, created_at))) WHERE {_OPEN}"
    )


def downgrade() -> None:
    """Remove them."""
    op.execute("DROP INDEX campotech.invoices_left_behind")
    op.execute("CREATE INDEX ON campotech.invoices (created_at) WHERE status = 'pending'")
    op.execute(
        "ALTER TABLE campotech.invoices DROP COLUMN sent_tax_id, "
        "DROP COLUMN sent_vat_condition, DROP COLUMN looked_at"
    )
