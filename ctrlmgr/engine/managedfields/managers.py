"""Who manages which fields: the entries of metadata.managedFields, decoded, and what holds for them as a whole.

Guarantees: an entry that was not touched is written as it was read, the very same dict; entries stand in Kubernetes'
order; at most `MAX_UPDATERS` of them are from updates (the oldest are then thrown together).
Source: apimachinery `managedfields/internal/managedfields.go`, `capmanagers.go`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple, TypeAlias

from ctrlmgr.api.go_text import quote
from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.engine.managedfields import field_set
from ctrlmgr.engine.managedfields.field_set import FieldSet
from ctrlmgr.engine.managedfields.path_element import go_json

APPLY: Final = "Apply"
UPDATE: Final = "Update"
MAX_UPDATERS: Final = 10
"""How many entries of updates an object keeps (`DefaultMaxUpdateManagers`)."""
ANCIENT: Final = "ancient-changes"
"""The manager of what the oldest of too many updates set."""
FIELDS_V1: Final = "FieldsV1"


class Manager(NamedTuple):
    """What tells one entry from another: appliers keep theirs across versions, updaters have one a version."""

    name: str
    operation: str
    api_version: str = ""
    """Empty for appliers."""
    subresource: str = ""

    @property
    def identifier(self) -> str:
        """The manager as Kubernetes spells it, for sorting only."""
        shown = {"manager": self.name, "operation": self.operation, "apiVersion": self.api_version}
        pairs = [(name, value) for name, value in {**shown, "subresource": self.subresource}.items() if value]
        return f"{{{','.join(f'{go_json(name)}:{go_json(value)}' for name, value in pairs)}}}"

    def __str__(self) -> str:
        shown = quote(self.name)
        if self.subresource:
            shown += f" with subresource {quote(self.subresource)}"
        return f"{shown} using {self.api_version}" if self.operation == UPDATE else shown


class Entry(NamedTuple):
    """What one manager manages."""

    fields: FieldSet
    api_version: str
    time: str | None = None
    """When it last changed anything, RFC 3339."""
    raw: Unstructured | None = None
    """The entry as it was read, while it is still that."""
    is_sorted: bool = False
    """Whether the fields are in the order in which they are written."""


Managed: TypeAlias = "dict[Manager, Entry]"


def is_reset(entries: Any) -> bool:
    """Whether a request takes all managers away: an empty list, or one with one empty entry."""
    return entries in ([], [{}])


def decode(entries: Sequence[Any] | None, *, trusted: bool = False) -> Managed:
    """Return the entries of metadata.managedFields by manager; `trusted` are those that this package encoded.

    Raises ValueError in Kubernetes' words for what is malformed.
    """
    managed: Managed = {}
    for index, entry in enumerate(entries or ()):
        operation, api_version = entry.get("operation", ""), entry.get("apiVersion", "")
        _check(index, operation, api_version, entry.get("fieldsType", ""))
        name, subresource = entry.get("manager", ""), entry.get("subresource", "")
        fields = entry.get("fieldsV1") or {}
        manager = Manager(name, operation, "" if operation == APPLY else api_version, subresource)
        if trusted:
            managed[manager] = Entry(fields, api_version, entry.get("time"), entry, is_sorted=True)
        else:
            managed[manager] = Entry(field_set.decode(fields), api_version, entry.get("time"))
    return managed


def _check(index: int, operation: str, api_version: str, fields_type: str) -> None:
    if operation not in (APPLY, UPDATE):
        raise ValueError("operation must be `Apply` or `Update`")
    if not api_version:
        raise ValueError("apiVersion must not be empty")
    if not fields_type:
        raise ValueError(f"missing fieldsType in managed fields entry {index}")
    if fields_type != FIELDS_V1:
        raise ValueError(f"invalid fieldsType {quote(fields_type)} in managed fields entry {index}")


def encode(managed: Managed) -> list[Unstructured]:
    """Return the entries as metadata.managedFields has them."""
    entries = [_encode_entry(manager, entry) for manager, entry in managed.items()]
    if len(entries) > 1:
        entries.sort(key=_order)
    return entries


def _encode_entry(manager: Manager, entry: Entry) -> Unstructured:
    if entry.raw is not None:
        return entry.raw
    result: Unstructured = {
        "manager": manager.name,
        "operation": manager.operation,
        "apiVersion": entry.api_version,
    }
    if entry.time is not None:
        result["time"] = entry.time
    result["fieldsType"] = FIELDS_V1
    result["fieldsV1"] = entry.fields if entry.is_sorted else field_set.in_order(entry.fields)
    if manager.subresource:
        result["subresource"] = manager.subresource
    return result


def _order(entry: Unstructured) -> tuple[str, ...]:
    return (
        entry["operation"],
        seconds(entry.get("time")),
        entry.get("manager", ""),
        entry["apiVersion"],
        entry.get("subresource", ""),
    )


def seconds(time: str | None) -> str:
    """Return a time as UTC to the second, so that times are ordered as strings; no time is before all others."""
    if not time or time[-1:] == "Z":
        return time[:19] if time else ""
    try:
        return datetime.fromisoformat(time).astimezone(UTC).isoformat()[:19]
    except ValueError:
        return time


def cap_updaters(managed: Managed) -> Managed:
    """Return the entries with the oldest of too many updates thrown together, by apiVersion."""
    if len(managed) <= MAX_UPDATERS:
        return managed
    updaters = [manager for manager in managed if manager.operation == UPDATE]
    surplus = len(updaters) - MAX_UPDATERS
    updaters.sort(key=lambda manager: (seconds(managed[manager].time), manager.identifier))
    result = dict(managed)
    oldest: dict[str, Manager] = {}
    thrown: dict[Manager, list[FieldSet]] = {}
    for manager in updaters:
        if surplus <= 0:
            break
        entry = result[manager]
        first = oldest.setdefault(entry.api_version, manager)
        bucket = Manager(ANCIENT, UPDATE, entry.api_version)
        if manager in (first, bucket):
            continue
        if bucket not in thrown:
            before = result[bucket] if bucket in result else result.pop(first)
            thrown[bucket] = [before.fields]
        thrown[bucket].append(entry.fields)
        result[bucket] = Entry({}, entry.api_version, entry.time)
        del result[manager]
        surplus -= 1
    for bucket, sets in thrown.items():
        result[bucket] = result[bucket]._replace(fields=_union(sets))
    return result


def _union(sets: Sequence[FieldSet]) -> FieldSet:
    """Return the union of some sets: of pairs first, because adding them one by one would copy the first ever again."""
    while len(sets) > 1:
        pairs = zip(sets[::2], sets[1::2], strict=False)
        sets = [*(field_set.union(*pair) for pair in pairs), *(sets[-1:] if len(sets) % 2 else ())]
    return sets[0]
