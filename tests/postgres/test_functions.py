"""Rules that every function keeps, read from the catalog and from the headers of the files."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from migrations.freeze import SQL
from tests.postgres.races import Connection
from tests.tools.lint_sql import ABLE_ANYWHERE

Session = Callable[[], Connection]

FILES = {file.stem: file.read_text(encoding="utf-8") for file in SQL.glob("functions/*.sql")}

TYPES = {"timestamp with time zone": "timestamptz"}
"""Where a header says a type in fewer words than the catalog."""


@pytest.fixture
def looking(session: Session) -> Connection:
    return session()


def header(name: str) -> str:
    """The comment at the top of a function's file, without its marks."""
    lines = FILES[name].split("create or replace function")[0].splitlines()
    return "\n".join(line.removeprefix("--").strip() for line in lines)


def is_internal(name: str) -> bool:
    return "(internal)" in header(name).split("\n\n")[0]


def headline(name: str) -> tuple[str, ...]:
    """The name, the parameters and the result in the first lines of a header."""
    signature = " ".join(header(name).split("\n\n")[0].split()).removesuffix(" (internal)")
    said = re.fullmatch(r"(\w+)\((.*)\) -> (.*)", signature)
    assert said is not None, signature
    return said.groups()


def granted(word: str) -> set[str]:
    """The names in one of grant_role's lists."""
    [names] = re.findall(
        rf"c_{word}\s+constant text\[\] := array\[(.*?)\]", FILES["grant_role"], flags=re.DOTALL
    )
    return set(re.findall(r"'(\w+)'", names))


GRANTED = granted("produce") | granted("work") | granted("operate") | granted("observe")


def test_every_function_is_closed_to_the_public_and_pinned_to_its_schema_or_to_its_caller(
    looking: Connection,
) -> None:
    """One that runs with its caller's rights in its caller's path is called by ours alone."""
    functions = looking.execute(
        """
        select p.proname, p.prosecdef as definer, coalesce(p.proconfig, '{}') as settings
          from pg_proc as p
         where p.pronamespace = 'tenure'::regnamespace
           and p.prokind = 'f'
           and not has_function_privilege('public', p.oid, 'execute')
        """
    ).fetchall()
    careless = [
        name
        for name, definer, settings in functions
        if not (
            "search_path=tenure, pg_temp" in settings
            if definer
            else settings == [] and (is_internal(name) or name in ABLE_ANYWHERE)
        )
    ]
    assert careless == []
    assert len(functions) == len(FILES)


def test_every_file_makes_one_function_and_there_are_no_others(looking: Connection) -> None:
    installed = looking.execute(
        "select p.proname from pg_proc as p where p.pronamespace = 'tenure'::regnamespace"
    ).fetchall()
    assert sorted(name for (name,) in installed) == sorted(FILES)


def test_every_function_that_is_granted_exists() -> None:
    assert GRANTED - FILES.keys() == set()


def test_every_function_is_internal_or_somebody_may_be_given_it() -> None:
    unclear = [name for name in sorted(FILES) if is_internal(name) == (name in GRANTED)]
    assert unclear == ["grant_role"]


def test_a_header_names_the_parameters_in_order_and_the_result(looking: Connection) -> None:
    functions = looking.execute(
        """
        select p.proname as name, coalesce(p.proargnames, '{}') as parameters,
               pg_get_function_result(p.oid) as result
          from pg_proc as p
         where p.pronamespace = 'tenure'::regnamespace
        """
    ).fetchall()
    for name, parameters, result in functions:
        result = TYPES.get(result, result.lower())
        assert headline(name) == (
            name,
            ", ".join(parameter.removeprefix("p_") for parameter in parameters),
            result.replace("tenure.", ""),
        )
        assert all(parameter.startswith("p_") for parameter in parameters)
