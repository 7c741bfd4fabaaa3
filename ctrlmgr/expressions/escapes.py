"""Escapes field names that are not identifiers in CEL: `a.b` becomes `a__dot__b`.

Source: apiserver `pkg/cel/escaping.go`.
"""

from __future__ import annotations

import re
from typing import Final

from ctrlmgr.expressions.expression_parser import children
from ctrlmgr.expressions.expression_tree import Call, Literal, Node, Select

_RESERVED: Final = frozenset(
    (
        "true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import",
        "let", "loop", "package", "namespace", "return", "var", "void", "while",
    )
)  # fmt: skip
_can_be_named = re.compile(r"[a-zA-Z_.\-/][a-zA-Z0-9_.\-/]*", re.ASCII).fullmatch
_SPECIAL: Final = re.compile(r"__|[.\-/]")
_ESCAPES: Final = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_ESCAPED: Final = re.compile(r"__[^_]+__")
_MEANT: Final = {escape: name for name, escape in _ESCAPES.items()}


def escaped(name: str) -> str:
    """Return the escaped name of a field; the empty string if the name cannot be escaped."""
    if name in _RESERVED:
        return f"__{name}__"
    return _SPECIAL.sub(lambda match: _ESCAPES[match[0]], name) if _can_be_named(name) else ""


def unescaped(written: str) -> str:
    """Return the original name for an escaped name; a name that is not escaped is returned unchanged."""
    if written[2:-2] in _RESERVED and _ESCAPED.fullmatch(written):
        return written[2:-2]
    if any(escape not in _MEANT for escape in _ESCAPED.findall(written)):
        return written
    return _ESCAPED.sub(lambda match: _MEANT[match[0]], written)


def unescape(root: Node) -> None:
    """Unescape the field names in a checked expression, so that the expression can be evaluated with decoded JSON."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Select):
            node.field = unescaped(node.field)
        elif isinstance(node, Call) and node.function in ("_[_]", "_[?_]"):
            key = node.arguments[1]
            if isinstance(key, Literal) and isinstance(key.value, str):
                key.value = unescaped(key.value)
        waiting += children(node)
