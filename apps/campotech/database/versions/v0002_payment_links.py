"""Links at which customers pay their invoices."""

from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Make the table."""
    op.execute(
        """
        CREATE TABLE campotech.payment_links (
            invoice_id uuid PRIMARY KEY REFERENCES campotech.invoices,
            organization_id uuid NOT NULL,
            preference_id text NOT NULL,              -- of MercadoPago
            url text NOT NULL,
            amount_cents bigint NOT NULL CHECK (amount_cents > 0),
            created_at timestamptz NOT NULL DEFAULT now()
        )
        """
    )


def downgrade() -> None:
    """Remove it; MercadoPago keeps the links."""
    op.execute("DROP TABLE campotech.payment_links")
