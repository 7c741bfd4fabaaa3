"""Apps in replays: their controllers run on a recording beside our own, and are held to what was recorded of them.

Guarantees: what an app's controller wrote in the recording, of its kind and of what it owns, is no input; it is
compared with what the app's code makes of the same inputs, at every checkpoint.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ctrlmgr.api.resource import Resource
from ctrlmgr.framework.app import App
from ctrlmgr.framework.assembly import descriptors
from ctrlmgr.recording.builders import ControllerBuilder, builder_of


class Replayed(NamedTuple):
    """What `Replay` takes of apps, by the names of their controllers."""

    builders: Mapping[str, ControllerBuilder]
    shares: Mapping[str, Sequence[Resource]]


def replayed(apps: Iterable[App]) -> Replayed:
    """Return what is replayed of apps."""
    found = [each for app in apps for each in descriptors(app)]
    shares = {each.name: [each.controller.declaration.resource, *each.owns] for each in found}
    return Replayed({each.name: builder_of(each) for each in found}, shares)
