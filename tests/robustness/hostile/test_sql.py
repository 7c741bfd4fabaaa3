"""Tests that no client data becomes part of a SQL statement: the code composes statements only from
its own constants.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import ctrlmgr

ROOT = Path(ctrlmgr.__file__).parent
EXECUTING = {"execute", "executemany", "executescript", "exec_driver_sql", "text", "SQL"}
OURS = {"kib", "mode", "pages", "setting", "standstill", "usual"}
"""Names of the expressions that statements may contain besides constants: an isolation level, some pragmas, numbers of
pages and KiB, two timeouts.
"""


def statements(tree: ast.AST) -> Iterator[ast.expr]:
    """Yield the SQL statements that the code executes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and node.args:
            called = node.func
            name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
            if name in EXECUTING:
                yield node.args[0]


def ingredients(statement: ast.expr) -> Iterator[str]:
    """Yield the expressions that are formatted into a SQL statement, as source code."""
    match statement:
        case ast.JoinedStr():
            yield from (ast.unparse(each.value) for each in statement.values if isinstance(each, ast.FormattedValue))
        case ast.BinOp():
            yield from (each for side in (statement.left, statement.right) for each in ingredients(side))
        case ast.Call(func=ast.Attribute(attr="format" | "join" | "replace" | "format_map")):
            yield ast.unparse(statement)
        case ast.Tuple():
            yield from (ast.unparse(each) for each in statement.elts)
        case ast.Name():
            yield statement.id


def is_ours(name: str) -> bool:
    return name in OURS or (name.isidentifier() and name.isupper())


def formatted(statement: ast.expr) -> bool:
    return isinstance(statement, ast.JoinedStr | ast.BinOp | ast.Call)


def test_statements_consist_of_constants_of_the_code() -> None:
    seen, foreign = 0, []
    for path in ROOT.rglob("*.py"):
        if path.is_relative_to(ROOT / "testing"):  # creates databases for tests, and chooses their names
            continue
        for statement in statements(ast.parse(path.read_text())):
            seen += 1
            if formatted(statement):
                foreign += [(path.name, each) for each in ingredients(statement) if not is_ours(each)]
    assert seen > 50
    assert foreign == []


@pytest.mark.parametrize(
    "source",
    [
        'execute(f"SELECT {name}")',
        'c.execute("SELECT " + name)',
        'c.execute("SELECT %s" % name)',
        'c.execute("SELECT %s %s" % (LIMIT, name))',
        'text("SELECT {}".format(name))',
        'c.execute(",".join(names))',
    ],
)
def test_other_statements_would_be_detected(source: str) -> None:
    (statement,) = statements(ast.parse(source))
    assert formatted(statement)
    assert not all(map(is_ours, ingredients(statement)))
