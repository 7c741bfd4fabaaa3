"""Decodes and encodes the entries of metadata.managedFields: the managers and the fields that each of them owns.

Guarantees: an untouched entry is written as the same dict that was read, and entries are in Kubernetes' order. An
object has at most `MAX_UPDATERS` entries of updates; if there are more, the oldest entries are merged. Source:
apimachinery `managedfields/internal/managedfields.go`, `capmanagers.go`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple, TypeAlias

from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.engine.managedfields import field_set
from ctrlmgr.engine.managedfields.field_set import FieldSet
from ctrlmgr.engine.managedfields.path_element import go_json
from ctrlmgr.golang.go_text import quote

APPLY: Final = "Apply"
UPDATE: Final = "Update"
MAX_UPDATERS: Final = 10
"""The maximum number of update entries of an object (`DefaultMaxUpdateManagers`)."""
ANCIENT: Final = "ancient-changes"
"""The manager of the merged fields of the oldest updates."""
FIELDS_V1: Final = "FieldsV1"


class Manager(NamedTuple):
    """The identity of an entry: an applier has one entry for all API versions, an updater one entry per version."""

    name: str
    operation: str
    api_version: str = ""
    """The apiVersion of the entry; empty for appliers."""
    subresource: str = ""

    @property
    def identifier(self) -> str:
        """The manager in Kubernetes' spelling, which is used only for sorting."""
        shown = {"manager": self.name, "operation": self.operation, "apiVersion": self.api_version}
        pairs = [(name, value) for name, value in {**shown, "subresource": self.subresource}.items() if value]
        return f"{{{','.join(f'{go_json(name)}:{go_json(value)}' for name, value in pairs)}}}"

    def __str__(self) -> str:
        shown = quote(self.name)
        if self.subresource:
            shown += f" with subresource {quote(self.subresource)}"
        return f"{shown} using {self.api_version}" if self.operation == UPDATE else shown


class Entry(NamedTuple):
    """An entry: the fields that one manager owns."""

    fields: FieldSet
    api_version: str
    time: str | None = None
    """The time of the entry's last change (RFC 3339)."""
    raw: Unstructured | None = None
    """The entry as it was read; None once it has changed."""
    is_sorted: bool = False
    """Whether the fields are already in the order in which they must be written."""


Managed: TypeAlias = "dict[Manager, Entry]"


def is_reset(entries: Any) -> bool:
    """Return whether managedFields remove all managers, because they are an empty list or contain one empty entry."""
    return entries in ([], [{}])


def decode(entries: Sequence[Any] | None, *, trusted: bool = False) -> Managed:
    """Return the entries of metadata.managedFields by manager; `trusted` says whether this package encoded the entries.

    Raises ValueError with Kubernetes' message if an entry is malformed.
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
    """Return the entries in the form of metadata.managedFields."""
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
    """Return a time in UTC with whole seconds, so that strings sort by time.

    If the time is missing, the function returns "", which sorts first.
    """
    if not time or time[-1:] == "Z":
        return time[:19] if time else ""
    try:
        return datetime.fromisoformat(time).astimezone(UTC).isoformat()[:19]
    except ValueError:
        return time


def cap_updaters(managed: Managed) -> Managed:
    """Return the entries of managers.

    If more than `MAX_UPDATERS` entries are from updates, merge the oldest entries of each apiVersion.
    """
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
    """Return the union of some sets; merge pairs of sets first, to avoid copying the first set repeatedly."""
    while len(sets) > 1:
        pairs = zip(sets[::2], sets[1::2], strict=False)
        sets = [*(field_set.union(*pair) for pair in pairs), *(sets[-1:] if len(sets) % 2 else ())]
    return sets[0]
