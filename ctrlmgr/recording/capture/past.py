"""What a recording that is gone on with says already.

Guarantees: a file is read whole before anything is written to it, so one that is damaged is refused and stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key, Resource, Revision
from ctrlmgr.eventlog.event import EventType
from ctrlmgr.recording.format import Change, RecordingReader


class Past(NamedTuple):
    """Where a recording ends."""

    revision: Revision = 0
    """That of its last change; 0 where there is none."""
    objects: Mapping[Resource, Mapping[Key, Object]] = {}
    """What exists at its end."""


def past_of(path: Path) -> Past:
    """Return what a recording says; raises `InvalidRecording` for what is none, and OSError."""
    objects: dict[Resource, dict[Key, Object]] = {}
    revision: Revision = 0
    for each in RecordingReader(path):
        if not isinstance(each, Change):
            continue
        obj = each.object
        revision = obj.revision
        there = objects.setdefault(obj.resource, {})
        if each.type is EventType.DELETED:
            there.pop(obj.key, None)
        else:
            there[obj.key] = obj
    return Past(revision, objects)
