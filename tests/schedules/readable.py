"""A schedule as numbered steps that a person can follow."""

from __future__ import annotations

from tests.schedules import statements
from tests.schedules.perform import Line, Performance
from tests.schedules.play import Family


def scripts(family: Family) -> str:
    """The actors of a family with what they do."""
    return " | ".join(
        f"{letter} {actor}: {', '.join(family.scripts[actor])}"
        for letter, actor in family.letters.items()
    )


def steps(done: Performance, backend: str) -> list[str]:
    """What was called and answered, for psql or for Python."""
    spell = _sql if backend == "postgres" else _python
    lines = [f"{done.family.name}:{done.order}  ({scripts(done.family)})"]
    for number, line in enumerate(done.lines, 1):
        said = f"  -- {line.said}" if line.said else ""
        lines.append(f"{number:>3}  {line.actor:<8}{spell(line, done.queue)}{said}")
    lines += [f"     NOT AS THE MODEL SAYS: {violation}" for violation in done.violations]
    return lines


def failure(done: Performance, backend: str) -> str:
    """The whole report of a schedule that went wrong, with how to run it again."""
    how = (
        "Each actor is a psql of its own on a scratch database with tenure, tests/clock.sql, and "
        "'create table application (queue text, actor text)'. Job ids are those of this run."
        if backend == "postgres"
        else "Each actor is a SqliteControlPlane of its own; a transaction is a connection."
    )
    again = (
        f"python -m tests.schedules --backend {backend} --replay '{done.family.name}:{done.order}'"
    )
    return "\n".join([again, how, *steps(done, backend)])


def _sql(line: Line, queue: str) -> str:
    return statements.spelled(line.call, queue, line.actor, line.now.isoformat())


def _python(line: Line, queue: str) -> str:
    if line.call.verb == "advance":
        return f"the clock is set to {line.now.isoformat()}"
    options = [f"{name}={value!r}" for name, value in line.call.options.items()]
    return f"{line.call.verb}({', '.join([*map(repr, line.call.arguments), *options])})"
