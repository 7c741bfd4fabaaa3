"""Runs the controllers of apps in replays of a recording, to compare their writes with the recorded writes.

Guarantees: the writes that an app's controller made to its kind and to the kinds that it owns are not replayed as
inputs. At every checkpoint, the recorded writes are compared with the writes that the app's code makes for the same
inputs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ctrlmgr.api.resource import Resource
from ctrlmgr.framework.app import App
from ctrlmgr.framework.controller_building import descriptors
from ctrlmgr.recording.replayed_controllers import ControllerBuilder, builder_of


class Replayed(NamedTuple):
    """The arguments of `Replay` that depend on apps, such as the names of their controllers."""

    builders: Mapping[str, ControllerBuilder]
    shares: Mapping[str, Sequence[Resource]]


def replayed(apps: Iterable[App]) -> Replayed:
    """Return the arguments of `Replay` for these apps."""
    found = [each for app in apps for each in descriptors(app)]
    shares = {each.name: [each.controller.declaration.resource, *each.owns] for each in found}
    return Replayed({each.name: builder_of(each) for each in found}, shares)
