"""A notification is known by its address and its payment, too: nothing else of it is signed."""

from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """One that was sent to another organisation before is still news for its own."""
    op.execute("ALTER TABLE campotech.payment_events DROP CONSTRAINT payment_events_pkey")
    op.execute(
        "ALTER TABLE campotech.payment_events ADD PRIMARY KEY (organization_id, resource_id, id)"
    )


def downgrade() -> None:
    """Only possible while each id is there once."""
    op.execute("ALTER TABLE campotech.payment_events DROP CONSTRAINT payment_events_pkey")
    op.execute("ALTER TABLE campotech.payment_events ADD PRIMARY KEY (id)")
