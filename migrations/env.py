"""Alembic's entry: `tenure.migrate` gives the connection, or asks for a script.

The version table is named without a schema: the search_path has been chosen by then, and with
it the schema of everything a migration makes.
"""

from alembic import context

attributes = context.config.attributes

if context.is_offline_mode():
    # With the driver's own paramstyle, Alembic would double every % of a function's body.
    context.configure(dialect_name="postgresql", dialect_opts={"paramstyle": "named"})
    with context.begin_transaction():
        context.get_context().impl.static_output(attributes["prelude"])
        context.run_migrations()
else:
    context.configure(connection=attributes["connection"])
    with context.begin_transaction():
        context.run_migrations()
