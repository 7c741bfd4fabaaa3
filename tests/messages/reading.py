"""Reads messages from source code: string literals of Python, in which `HOLE` stands for a placeholder, and string
literals of Go.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

HOLE: Final = "\0"

_GO: Final = re.compile(
    r"""//[^\n]*|/\*.*?\*/|"(?:[^"\\\n]|\\.)*"|`[^`]*`|'(?:[^'\\\n]|\\.)*'|\+|\s+|[^\s"`+/']+|/""", re.DOTALL
)
_VERB: Final = re.compile(r"%[-+#0 ]*(?:\[\d+\])?[\d.*]*[a-zA-Z]")
_SKIPPED: Final = re.compile(r"(_test|\.pb|zz_generated\.(conversion|deepcopy|defaults|openapi)|doc_generated)\.go$")
_SKIPPED_FOLDERS: Final = frozenset(("testing", "fuzzer", "test", "options", "testdata", "metrics", "printers"))
_LOGGED: Final = re.compile(r"(klog|logger|log)\.")
_SENTENCE: Final = re.compile(r"[a-z]{3}")
_LONGEST: Final = 450


class Literal(NamedTuple):
    """One of our messages, and where it occurs."""

    module: str
    line: int
    text: str


def ours(root: Path, folders: tuple[str, ...]) -> Iterator[Literal]:
    """Yield the messages of several words in these folders of the package, except docstrings and column titles."""
    for folder in folders:
        for path in sorted((root / folder).rglob("*.py")):
            if path.stem.endswith(("printer", "printers")):
                continue
            for line, text in _literals(ast.parse(path.read_text(encoding="utf-8"))):
                if _is_sentence(text):
                    yield Literal(path.relative_to(root).as_posix(), line, text)


def _literals(tree: ast.Module) -> Iterator[tuple[int, str]]:
    skipped = {node for each in ast.walk(tree) for node in _unseen(each)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr) and node not in skipped:
            yield node.lineno, "".join(_part(each) for each in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in skipped:
            yield node.lineno, node.value


def _unseen(node: ast.AST) -> Iterator[ast.AST]:
    """Yield strings that are not messages: docstrings, strings that the code splits into lists, and parts of a message
    with placeholders.

    Descriptions of unused kinds are not messages either, because only the documentation shows them.
    """
    if isinstance(node, ast.Attribute) and node.attr == "split":
        yield node.value
    if isinstance(node, ast.keyword) and node.arg == "unused":
        yield node.value
    if isinstance(node, ast.Assign) and _names_unused(node):
        yield node.value
    if isinstance(node, ast.Expr):
        yield node.value
    if isinstance(node, ast.JoinedStr):
        yield from node.values
    if isinstance(node, ast.FormattedValue) and node.format_spec is not None:
        yield node.format_spec
        yield from ast.walk(node.format_spec)


def _names_unused(node: ast.Assign) -> bool:
    return any(isinstance(each, ast.Name) and each.id == "_UNUSED" for each in node.targets)


def _part(node: ast.expr) -> str:
    return str(node.value) if isinstance(node, ast.Constant) else HOLE


def of_go(folder: Path) -> Iterator[str]:
    """Yield the strings of several words in Go files, except logged strings and tests; concatenated literals are
    joined.
    """
    for path in sorted(folder.rglob("*.go")):
        if not _SKIPPED.search(path.name) and _SKIPPED_FOLDERS.isdisjoint(path.parts):
            for text in _go_literals(path.read_text(encoding="utf-8")):
                joined = " ".join(text.split())
                if _is_sentence(joined) and len(joined) <= _LONGEST:
                    yield joined


def _go_literals(source: str) -> Iterator[str]:
    text, is_joined, is_logged = "", False, False
    for match in _GO.finditer(source):
        token = match[0]
        if token.isspace() or token.startswith(("//", "/*")):
            continue
        if token[0] in '"`':
            if not is_joined and text:
                yield text
                text = ""
            text, is_joined = text + ("" if is_logged else _unquoted(token)), False
        elif token == "+" and text:
            is_joined = True
        else:
            yield text
            text, is_joined, is_logged = "", False, bool(_LOGGED.search(token))


def _unquoted(token: str) -> str:
    if token[0] == "`":
        return token[1:-1]
    try:
        return str(ast.literal_eval(token))
    except (SyntaxError, ValueError):  # an escape sequence that only Go has
        return token[1:-1]


def _is_sentence(text: str) -> bool:
    return " " in text.strip() and _SENTENCE.search(text) is not None


def with_holes(text: str) -> str:
    """Return a Go format string in which `HOLE` replaces the placeholders."""
    return _VERB.sub(HOLE, text).replace("%%", "%")
