"""The last position of each technician, for those who look where somebody is now."""

from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Make the table."""
    op.execute(
        """
        CREATE TABLE campotech.technician_positions (
            organization_id uuid, user_id uuid,
            latitude decimal(10, 8) NOT NULL,
            longitude decimal(11, 8) NOT NULL,
            accuracy decimal(6, 2),
            recorded_at timestamptz NOT NULL,
            received_at timestamptz NOT NULL,  -- what is new is found by it: phones send late
            PRIMARY KEY (organization_id, user_id)
        )
        """
    )
    op.execute("CREATE INDEX ON campotech.technician_positions (recorded_at)")


def downgrade() -> None:
    """Remove it; `technician_locations` keeps all positions."""
    op.execute("DROP TABLE campotech.technician_positions")
