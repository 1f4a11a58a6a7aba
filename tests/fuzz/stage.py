"""A database with tenure, a role for each right, and a session for each role."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager

import psycopg
from psycopg import sql

from tests.fuzz.caller import PATIENCE, Fuzz
from tests.fuzz.catalogue import public_functions
from tests.fuzz.world import World
from tests.tools import databases

WORDS = ("produce", "work", "operate", "observe", "nobody")


@contextmanager
def fuzz(dsn: str, seed: int) -> Iterator[Fuzz]:
    """Ready to call; the roles go with it."""
    with ExitStack() as stack:
        owner = stack.enter_context(closing(psycopg.connect(dsn, autocommit=True)))
        roles = {word: databases.new_name(f"fuzz_{word}") for word in WORDS}
        sessions = {}
        for word, role in roles.items():
            name = sql.Identifier(role)
            owner.execute(sql.SQL("create role {}").format(name))
            stack.callback(owner.execute, sql.SQL("drop owned by {0}; drop role {0}").format(name))
            if word == "nobody":
                owner.execute(sql.SQL("grant usage on schema tenure to {}").format(name))
            else:
                owner.execute("select tenure.grant_role(%s, %s)", [role, word])
        for role in ("", *roles.values()):
            session = psycopg.connect(
                dsn, autocommit=True, options=f"-c statement_timeout={PATIENCE}s"
            )
            sessions[role] = stack.enter_context(closing(session))
            if role:
                session.execute(sql.SQL("set role {}").format(sql.Identifier(role)))
        yield Fuzz(
            sessions,
            roles["observe"],
            public_functions(owner, list(roles.values())),
            World(owner),
            random.Random(seed),
        )
