"""All tables of the first release."""

from pathlib import Path

from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make them."""
    statements = Path(__file__).with_suffix(".sql").read_text("utf-8")
    op.get_bind().exec_driver_sql(statements, execution_options={"no_parameters": True})


def downgrade() -> None:
    """Remove them with all that is in them."""
    op.execute("DROP SCHEMA campotech CASCADE")
