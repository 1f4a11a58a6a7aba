"""What is recorded about one source file."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from hashlib import sha256
from typing import TypeAlias

Facts: TypeAlias = dict[str, object]


def facts_of(source: bytes, check: Callable[[], object] = lambda: None) -> Facts:
    """Lines, classes, functions, imported modules and the SHA-256 of a Python source.

    A source that does not parse is a fact too: `fault` says why, and the counts are null.
    `check` is called between the statements of the module, so that it can put an end to this.
    """
    facts: Facts = {
        "sha256": sha256(source).hexdigest(),
        "bytes": len(source),
        "lines": len(source.splitlines()),
        "classes": None,
        "functions": None,
        "imports": None,
        "fault": None,
    }
    try:
        module = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return facts | {"fault": f"{type(error).__name__}: {error}"[:500]}
    classes = functions = 0
    imports: set[str] = set()
    for statement in module.body:
        check()
        for node in _statements(statement):
            if isinstance(node, ast.ClassDef):
                classes += 1
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                functions += 1
            elif isinstance(node, ast.Import):
                imports.update(name.name for name in node.names)
            elif isinstance(node, ast.ImportFrom):
                imports.add("." * node.level + (node.module or ""))
    return facts | {"classes": classes, "functions": functions, "imports": sorted(imports)}


def _statements(outermost: ast.stmt) -> Iterator[ast.stmt]:
    """A statement and those inside it; what is counted cannot be inside an expression."""
    pending: list[ast.stmt] = [outermost]
    while pending:
        node = pending.pop()
        yield node
        for block in ("body", "orelse", "finalbody"):
            pending.extend(getattr(node, block, ()))
        for part in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
            pending.extend(part.body)
