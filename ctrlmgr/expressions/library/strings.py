"""Additional functions of strings, such as substrings, replacing, splitting, joining, quoting.

Guarantees: positions count characters, not bytes.

Source: cel-go `ext/strings.go` (version 2, as in Kubernetes).
"""

from __future__ import annotations

from typing import Any, Final

from ctrlmgr.expressions.declarations import Library
from ctrlmgr.expressions.library.formatting import format_text
from ctrlmgr.expressions.values import EvalError
from ctrlmgr.work_budget import spend

STRINGS: Final = Library()
_function = STRINGS.function

_LOWER = {code: chr(code + 32) for code in range(ord("A"), ord("Z") + 1)}
_UPPER = {code: chr(code - 32) for code in range(ord("a"), ord("z") + 1)}
_WRITTEN: Final = 100
"""Writing this number of characters counts as one step of work."""
_SPACE = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))


@_function("charAt", "string.(int) -> string")
def _char_at(text: str, at: int) -> str:
    if not 0 <= at <= len(text):
        raise EvalError(f"index out of range: {at}")
    return text[at : at + 1]


@_function("indexOf", "string.(string) -> int", "string.(string, int) -> int")
def _index_of(text: str, part: str, start: int = 0) -> int:
    if not part:
        return start
    if start < 0:
        raise EvalError(f"index out of range: {start}")
    return text.find(part, start)


@_function("lastIndexOf", "string.(string) -> int", "string.(string, int) -> int")
def _last_index_of(text: str, part: str, start: int | None = None) -> int:
    if start is None:
        return text.rfind(part) if part else len(text)
    if not part:
        return start
    if start < 0:
        raise EvalError(f"index out of range: {start}")
    return text.rfind(part, 0, start + len(part)) if start < len(text) else -1


@_function("lowerAscii", "string.() -> string")
def _lower(text: str) -> str:
    return text.translate(_LOWER)


@_function("upperAscii", "string.() -> string")
def _upper(text: str) -> str:
    return text.translate(_UPPER)


@_function("trim", "string.() -> string")
def _trim(text: str) -> str:
    return text.strip(_SPACE)


@_function("replace", "string.(string, string) -> string", "string.(string, string, int) -> string")
def _replace(text: str, old: str, new: str, most: int = -1) -> str:
    found = len(text) + 1 if not old else text.count(old)
    replaced = found if most < 0 else min(found, most)
    spend((len(text) + replaced * max(len(new) - len(old), 0)) // _WRITTEN)
    return text.replace(old, new, max(most, -1))


@_function("split", "string.(string) -> list(string)", "string.(string, int) -> list(string)")
def _split(text: str, separator: str, most: int = -1) -> list[str]:
    if most == 0:
        return []
    if most == 1:
        return [text]
    if separator:
        return text.split(separator, most - 1 if most > 0 else -1)
    return list(text) if most < 0 or most >= len(text) else [*text[: most - 1], text[most - 1 :]]


@_function("substring", "string.(int) -> string", "string.(int, int) -> string")
def _substring(text: str, begin: int, end: int | None = None) -> str:
    last = len(text) if end is None else end
    if end is not None and begin > end:
        raise EvalError(f"invalid substring range. start: {begin}, end: {end}")
    for at in (begin, last):
        if not 0 <= at <= len(text):
            raise EvalError(f"index out of range: {at}")
    return text[begin:last]


@_function("join", "list(string).() -> string", "list(string).(string) -> string")
def _join(texts: list[Any], separator: str = "") -> str:
    if not all(isinstance(each, str) for each in texts):
        raise EvalError("no such overload: join")
    return separator.join(texts)


_ESCAPED = {
    "\a": r"\a", "\b": r"\b", "\f": r"\f", "\n": r"\n", "\r": r"\r", "\t": r"\t", "\v": r"\v", "\\": r"\\", '"': r"\"",
}  # fmt: skip


@_function("strings.quote", "(string) -> string")
def _quote(text: str) -> str:
    return '"' + "".join(_ESCAPED.get(each, each) for each in text) + '"'


@_function("format", "string.(list(dyn)) -> string")
def _format(text: str, arguments: list[Any]) -> str:
    return format_text(text, arguments)
