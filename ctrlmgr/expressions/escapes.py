"""How expressions write the names of fields that are no names in CEL: `a.b` is `a__dot__b`.

Source: apiserver `pkg/cel/escaping.go`.
"""

from __future__ import annotations

import re
from typing import Final

from ctrlmgr.expressions.nodes import Call, Literal, Node, Select
from ctrlmgr.expressions.reading import children

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
    """Return a field's name as expressions write it, "" if they cannot."""
    if name in _RESERVED:
        return f"__{name}__"
    return _SPECIAL.sub(lambda match: _ESCAPES[match[0]], name) if _can_be_named(name) else ""


def unescaped(written: str) -> str:
    """Return the name that is written so; what is no way of writing one stands for itself."""
    if written[2:-2] in _RESERVED and _ESCAPED.fullmatch(written):
        return written[2:-2]
    if any(escape not in _MEANT for escape in _ESCAPED.findall(written)):
        return written
    return _ESCAPED.sub(lambda match: _MEANT[match[0]], written)


def unescape(root: Node) -> None:
    """Have a checked expression look up the fields that it means, also in objects that are as they came from JSON."""
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
