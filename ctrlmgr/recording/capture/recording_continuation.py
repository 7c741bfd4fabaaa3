"""Reads the end of a recording that will be continued, and checks that it can be continued.

Guarantees: a file is not continued if it cannot be read completely, or if it contains objects of resources that are no
longer recorded. A recording of another cluster or log is refused, too, if its objects show that it is of another
cluster or log.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key, Resource, Revision
from ctrlmgr.errors import SettingsError
from ctrlmgr.eventlog import EventLog
from ctrlmgr.eventlog.event import EventType
from ctrlmgr.recording.format import Change, RecordingReader

_SHOWN: Final = 3


class RecordingEnd(NamedTuple):
    """The last revision of a recording, and the objects that exist at that revision."""

    path: Path
    revision: Revision
    objects: Mapping[Resource, Mapping[Key, Object]]


def read_ending(path: Path) -> RecordingEnd:
    """Read a recording to its end, and return the end; raises `RecordingError` if the recording is invalid."""
    objects: dict[Resource, dict[Key, Object]] = {}
    reader = RecordingReader(path)
    for entry in reader:
        if isinstance(entry, Change):
            found = objects.setdefault(entry.object.resource, {})
            if entry.type is EventType.DELETED:
                found.pop(entry.object.key, None)
            else:
                found[entry.object.key] = entry.object
    return RecordingEnd(path, reader.revision, {resource: found for resource, found in objects.items() if found})


def check_chosen(ending: RecordingEnd, chosen: Collection[Resource], namespace: str) -> None:
    """Raise `SettingsError` if the file contains objects of resources that are no longer recorded."""
    others = sorted(str(resource) for resource in ending.objects if resource not in chosen)
    if others:
        raise SettingsError(f"--append: {ending.path} also holds {_shown(others)}, which --resources does not include")
    if namespace:
        elsewhere = sorted(
            {key.namespace or "no namespace" for found in ending.objects.values() for key in found} - {namespace}
        )
        if elsewhere:
            raise SettingsError(
                f"--append: {ending.path} also contains objects of {_shown(elsewhere)}, but -n selects one namespace"
            )


def check_log(ending: RecordingEnd, log: EventLog, is_selected: Callable[[Object], bool]) -> None:
    """Raise `SettingsError` if the objects at the file's end differ from the objects in the log.

    Raises `Expired` if the log's state at that revision was compacted.
    """
    head = log.head().revision
    if ending.revision > head:
        raise SettingsError(f"--append: {ending.path} ends at revision {ending.revision}, the log at {head}")
    there = {
        (obj.resource, obj.key): obj.revision for obj in log.snapshot(at=ending.revision).objects if is_selected(obj)
    }
    recorded = {
        (resource, key): obj.revision for resource, found in ending.objects.items() for key, obj in found.items()
    }
    if there != recorded:
        resource, key = min(there.items() ^ recorded.items())[0]
        raise SettingsError(
            f"--append: {ending.path} differs from this log up to revision {ending.revision}, for example in "
            f"{resource} {key}"
        )


def _shown(names: list[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (" and more" if len(names) > _SHOWN else "")
