"""Finds a valid object of a custom kind, with which generated scenarios begin.

Guarantees: the server accepts the returned object. The search prefers an example of the schema, then a small object; if
rules refuse both, it changes one property after another, until the server accepts the object.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any, Final

from ctrlmgr.errors import CtrlmgrError
from ctrlmgr.extensions.definition import Definition, Version
from ctrlmgr.extensions.structural import MISSING, Raw
from ctrlmgr.trial.generation.judged_changes import Fields, as_stored, errors_of
from ctrlmgr.trial.generation.sample_values import candidates, fullest, placed, smallest
from ctrlmgr.trial.generation.schema_paths import places

_ATTEMPTS: Final = 3_000
"""The number of objects that the search validates before it gives up."""
_TYPICAL: Final = 3
"""The number of random alternatives (`anyOf`, `oneOf`) of the smallest and of the fullest object."""


class NoFirstState(CtrlmgrError):
    """No valid object of the kind was found; pass an example of an object."""


def first_state(definition: Definition, version: Version, random: Random, *, name: str = "sample") -> Fields:
    """Return a valid object as the server stores it; raises `NoFirstState` if the search finds none."""
    head = _head(definition, version, name)
    refused: list[tuple[int, Fields]] = []
    for spec in _proposals(version.raw_schema or {}, random):
        fields = as_stored(version, {**spec, **head})
        errors = errors_of(version, fields)
        if not errors:
            return fields
        refused.append((len(errors), fields))
    return _repaired(version, min(refused, key=lambda each: each[0])[1], random, definition.name)


def _head(definition: Definition, version: Version, name: str) -> Fields:
    names = definition.accepted if definition.accepted.kind else definition.names
    metadata = {"name": name, "namespace": "default"} if definition.namespaced else {"name": name}
    return {"apiVersion": f"{definition.group}/{version.name}", "kind": names.kind, "metadata": metadata}


def _proposals(raw: Raw, random: Random) -> Iterator[Fields]:
    properties = {name: each for name, each in (raw.get("properties") or {}).items() if name != "status"}
    written: Raw = {**raw, "properties": properties, "required": [*{*(raw.get("required") or ())} & {*properties}]}
    if isinstance(raw.get("example"), dict):
        yield dict(raw["example"])
    with_spec = {**written, "required": [*{*written["required"], *({"spec"} & {*properties})}]}
    for _ in range(_TYPICAL):
        for whole in (smallest(with_spec, random), fullest(written, random)):
            yield {name: each for name, each in whole.items() if name != "metadata"}


def _repaired(version: Version, fields: Fields, random: Random, name: str) -> Fields:
    """Change one random property at a time, and keep a change if the number of errors does not grow."""
    raw = version.raw_schema or {}
    errors = errors_of(version, fields)
    for _ in range(_ATTEMPTS):
        place = random.choice([*places(raw, fields)])
        value: Any = random.choice([*candidates(place.raw, random, place.hints), MISSING])
        tried = as_stored(version, placed(raw, random, fields, place.path, value))
        found = errors_of(version, tried)
        if not found:
            return tried
        if len(found) <= len(errors):
            fields, errors = tried, found
    raise NoFirstState(f"no valid object of {name} was found; the last attempt was refused: {errors[0].message}")
