"""Resolves the field paths of selectable fields and of validation rules in a schema.

Source: apiextensions-apiserver `pkg/apiserver/schema/cel/validation.go` (`ValidFieldPath`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ctrlmgr.api.field import Path
from ctrlmgr.extensions.structural import Structural

_TOKEN = re.compile(r"[.\[\]]|'(?:[^'\\]|\\.)*'|[^.\[\]']+|'", re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_NOWHERE = "does not refer to a valid field"
_ENDED = "unexpected end of JSON path"


def resolve(text: str, schema: Structural, *, allow_brackets: bool = True) -> tuple[Path, Structural]:
    """Return the path in the form that error causes contain, and the schema of the field.

    Raises ValueError, with Kubernetes' message, if the path is invalid.
    """
    path = Path()
    tokens = (match[0] for match in _TOKEN.finditer(text))
    for token in tokens:
        if token == ".":
            name = _next(tokens)
        elif token == "[":
            if not allow_brackets:
                raise ValueError("array notation is not allowed")
            name = _quoted(_next(tokens))
        else:
            raise ValueError(f"expected [ or . but got: {token}")
        path, schema = _step(path, schema, name)
        if token == "[" and (closing := _next(tokens)) != "]":
            raise ValueError(f"expected ] but got {closing}")
    return path, schema


def _next(tokens: Iterator[str]) -> str:
    for token in tokens:
        return token
    raise ValueError(_ENDED)


def _quoted(token: str) -> str:
    if len(token) < len("''") or token[0] != "'" or token[-1] != "'":
        raise ValueError(f"expected single quoted string but got {token}")
    return _ESCAPE.sub(r"\1", token[1:-1])


def _step(path: Path, schema: Structural, name: str) -> tuple[Path, Structural]:
    if schema.properties:
        below = schema.properties.get(name)
        path = path.child(name)
    else:
        below = schema.additional
        path = path.key(name)
    if below is None:
        raise ValueError(_NOWHERE)
    return path, below
