"""Finds the constants in a schema's rules; changes near these constants are likely to change a rule's result.

For the rule `self.replicas <= 5 || self.mode == "large"`, the constants are 5 and `large`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from ctrlmgr.expressions.expression_parser import children, read
from ctrlmgr.expressions.expression_tree import Literal, Node
from ctrlmgr.expressions.source import CompileError
from ctrlmgr.extensions.structural import RULES, Raw

_LONGEST: Final = 200


def literals_of(raw: Raw) -> list[int | float | str]:
    """Return the different numbers and strings in the rules of one schema node, in the order of the rules."""
    found: dict[tuple[type, Any], int | float | str] = {}
    for rule in raw.get(RULES) or ():
        for value in _constants(str(rule.get("rule") or "")):
            found.setdefault((type(value), value), value)
    return list(found.values())


def _constants(rule: str) -> Iterator[int | float | str]:
    try:
        waiting: list[Node] = [read(rule)]
    except CompileError:
        return
    while waiting:
        node = waiting.pop(0)
        waiting += children(node)
        if isinstance(node, Literal) and _is_useful(node.value):
            yield node.value


def _is_useful(value: Any) -> bool:
    return (isinstance(value, int | float) and not isinstance(value, bool)) or (
        isinstance(value, str) and 0 < len(value) <= _LONGEST
    )
