"""Values for any schema node: the smallest value, the fullest value, and candidates near each limit.

Guarantees: the values are only proposals. The caller asks the validation which of them are valid.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from random import Random
from typing import Any, Final

from ctrlmgr.extensions.structural import EMBEDDED, LIST_TYPE, MISSING, PRESERVE, Raw, single_items
from ctrlmgr.trial.generation.effective_schema import effective
from ctrlmgr.trial.generation.scalar_values import Hints, numbers, strings

_DEEPEST: Final = 12
_MOST_ITEMS: Final = 100
"""The maximum number of items of a generated list; a limit of a schema beyond this number is not tried."""
_EMBEDDED: Final = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "embedded"}}
_ATTEMPTS: Final = 20


def smallest(raw: Raw, random: Random) -> Any:
    """Return a value with only its required parts: the default, an example, or the first value that the type allows."""
    return _built(raw, random, whole=False, depth=0)


def fullest(raw: Raw, random: Random) -> Any:
    """Return a value with all optional fields, and with at least one item in each list and map."""
    return _built(raw, random, whole=True, depth=0)


def candidates(raw: Raw, random: Random, hints: Hints = ()) -> Iterator[Any]:
    """Yield values at and beyond the limits of a schema node, and values of another type.

    The value null is left out, because a merge patch cannot write it.
    """
    raw = effective(raw, random)
    yield from (raw[keyword] for keyword in ("default", "example") if raw.get(keyword) is not None)
    yield from (each for each in raw.get("enum") or () if each is not None)
    yield from _of_type(raw, random, hints)
    yield from (3, "text") if raw.get("type") not in ("integer", "number", "string") else ({}, True)


def _of_type(raw: Raw, random: Random, hints: Hints) -> Iterator[Any]:
    match raw.get("type"):
        case "boolean":
            yield from (True, False)
        case "integer" | "number":
            yield from numbers(raw, hints)
        case "string":
            yield from strings(raw, random, hints)
        case "array":
            yield from _lists(raw, random)
        case "object":
            yield from _objects(raw, random)


def _built(raw: Raw, random: Random, *, whole: bool, depth: int) -> Any:
    raw = effective(raw, random)
    if raw.get("default") is not None and not (whole and raw.get("properties")):
        return raw["default"]
    if raw.get("example") is not None:
        return raw["example"]
    if raw.get("enum"):
        return next((each for each in raw["enum"] if each is not None), None)
    if raw.get(EMBEDDED):
        return dict(_EMBEDDED)
    match raw.get("type"):
        case "object":
            return _object(raw, random, whole=whole, depth=depth)
        case "array":
            return _items(raw, random, max(raw.get("minItems") or 0, int(whole)), whole=whole, depth=depth)
        case _:
            return next(_of_type(raw, random, ()), {} if raw.get(PRESERVE) else None)


def _object(raw: Raw, random: Random, *, whole: bool, depth: int) -> dict[str, Any]:
    properties: Mapping[str, Raw] = raw.get("properties") or {}
    required = raw.get("required") or ()
    names = [name for name in properties if name in required or (whole and depth < _DEEPEST)]
    result = {name: _built(properties[name], random, whole=whole, depth=depth + 1) for name in names}
    values = raw.get("additionalProperties")
    if isinstance(values, Mapping):
        count = max(raw.get("minProperties") or 0, int(whole))
        result |= {f"key-{at}": _built(values, random, whole=whole, depth=depth + 1) for at in range(count)}
    return result


def _items(raw: Raw, random: Random, count: int, *, whole: bool, depth: int = 0) -> list[Any]:
    items = single_items(raw)
    if items is None:
        return []
    found: list[Any] = []
    for attempt in range(count + _ATTEMPTS):
        if len(found) == count:
            break
        each = _varied(items, random, attempt, whole=whole, depth=depth + 1)
        if each not in found:
            found.append(each)
    return found


def _varied(items: Raw, random: Random, attempt: int, *, whole: bool, depth: int) -> Any:
    """Return an item that differs from the items of earlier attempts, if the schema allows several values."""
    value = _built(items, random, whole=whole, depth=depth)
    if not attempt:
        return value
    if isinstance(value, dict):
        properties = effective(items, random).get("properties") or {}
        return {
            name: _varied(properties[name], random, attempt, whole=whole, depth=depth) if name in properties else each
            for name, each in value.items()
        }
    allowed = [*candidates(items, random)]
    return allowed[attempt % len(allowed)] if allowed else value


def _lists(raw: Raw, random: Random) -> Iterator[list[Any]]:
    least, most = raw.get("minItems"), raw.get("maxItems")
    sizes = [1, 0, 2, *([least, least - 1] if least else []), *([most, most + 1] if most is not None else [])]
    for size in dict.fromkeys(sizes):
        if 0 <= size <= _MOST_ITEMS:
            yield _items(raw, random, size, whole=False)
    one = _items(raw, random, 1, whole=True)
    yield one
    if raw.get(LIST_TYPE) in ("set", "map") or raw.get("uniqueItems"):
        yield one * 2


def _objects(raw: Raw, random: Random) -> Iterator[dict[str, Any]]:
    small, full = _object(raw, random, whole=False, depth=0), _object(raw, random, whole=True, depth=0)
    yield from (small, full, {})
    for name in raw.get("required") or ():
        yield {each: value for each, value in full.items() if each != name}
    values, most = raw.get("additionalProperties"), raw.get("maxProperties")
    if isinstance(values, Mapping) and (most is None or most <= _MOST_ITEMS):
        for size in (1, 2) if most is None else (most, most + 1):
            yield {f"key-{at}": _built(values, random, whole=False, depth=0) for at in range(size)}


def placed(raw: Raw, random: Random, value: Any, path: tuple[str | int, ...], new: Any) -> Any:
    """Return a copy of `value` with `new` at a path; missing parents become smallest values.

    If `new` is MISSING, the field or the item at the path is removed.
    """
    if not path:
        return new
    step, rest = path[0], path[1:]
    if isinstance(step, int):
        below = single_items(raw) or {}
        items = list(value) if isinstance(value, list) else []
        items += [smallest(below, random) for _ in range(step + 1 - len(items))]
        if new is MISSING and not rest:
            return items[:step] + items[step + 1 :]
        items[step] = placed(below, random, items[step], rest, new)
        return items
    result = dict(value) if isinstance(value, dict) else dict(smallest(raw, random) or {})
    if new is MISSING and not rest:
        result.pop(step, None)
    else:
        result[step] = placed(below_of(raw, step), random, result.get(step), rest, new)
    return result


def below_of(raw: Raw, name: str) -> Raw:
    """Return the schema of a field or of a map's value; an empty schema if it is not declared."""
    declared: Raw | None = (raw.get("properties") or {}).get(name)
    others = raw.get("additionalProperties")
    return declared if declared is not None else others if isinstance(others, Mapping) else {}
