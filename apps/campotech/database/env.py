"""What alembic runs: migrations on the connection that it is given."""

from alembic import context

context.configure(
    connection=context.config.attributes["connection"],
    version_table="campotech_version",
    version_table_schema="public",
)
with context.begin_transaction():
    context.run_migrations()
