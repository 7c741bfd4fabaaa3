"""Keeps the condition `Dangling` of FlowSchemas, which says that the FlowSchema's priority level does not exist.

Guarantees:
- A wrong condition `Dangling` of a FlowSchema is corrected by server-side apply with force, by the field
  manager `api-priority-and-fairness-config-consumer-v1`.
- A FlowSchema is written at most six times in a minute. Therefore servers that disagree about the condition do not fill
  the log.

Source: apiserver `pkg/util/flowcontrol/apf_controller.go`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from contextlib import suppress
from random import Random
from typing import Any, Final

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key
from ctrlmgr.client import EngineClient
from ctrlmgr.clock import Clock, format_time_seconds
from ctrlmgr.errors import NotFound
from ctrlmgr.eventlog import EventLog
from ctrlmgr.informer import Change, Informers, Lister
from ctrlmgr.kinds.flowcontrol.flow_resources import FLOW_SCHEMAS, LEVELS, is_usable
from ctrlmgr.kinds.flowcontrol.suggested_configuration import API_VERSION
from ctrlmgr.manager import Controller, Result, Watch
from ctrlmgr.manager.controller import own_key

CONTROLLER_NAME: Final = "priority-and-fairness-config-consumer"
MANAGER: Final = f"api-{CONTROLLER_NAME}-v1"

_LEVEL: Final = "priority level"
_MINUTE: Final = 60.0
_MOST: Final = 6
"""The maximum number of writes of one FlowSchema in a minute."""
_LATER: Final = (30, 75)
"""The minimum and maximum number of seconds until a FlowSchema that was written too often is checked again."""


def desired_condition(schema: Mapping[str, Any], now: int, *, exists: bool) -> dict[str, Any] | None:
    """Return the new condition of a FlowSchema; None if the FlowSchema already has this condition.

    The argument `exists` is True if the priority level of the FlowSchema exists. `now` is the time of a change, in
    microseconds since 1970.
    """
    name = _level_name(schema)
    reference = f'This FlowSchema references the PriorityLevelConfiguration object named "{name}"'
    desired = {
        "status": "False" if exists else "True",
        "reason": "Found" if exists else "NotFound",
        "message": f"{reference} and it exists" if exists else f"{reference} but there is no such object",
    }
    conditions = (schema.get("status") or {}).get("conditions") or ()
    current: Mapping[str, Any] = next((each for each in conditions if each.get("type") == "Dangling"), {})
    if all(current.get(field) == value for field, value in desired.items()):
        return None
    return {"type": "Dangling", "lastTransitionTime": format_time_seconds(now), **desired}


class DanglingCondition:
    """Reconciles FlowSchemas."""

    def __init__(self, schemas: Lister, levels: Lister, *, clock: Clock, random: Random) -> None:
        """Create a reconciler that reads FlowSchemas from `schemas` and priority levels from `levels`.

        The generator `random` distributes the writes of several servers over time.
        """
        self._schemas = schemas
        self._levels = levels
        self._clock = clock
        self._random = random
        self._written: dict[Key, deque[float]] = {}

    def reconcile(self, key: Key, client: EngineClient) -> Result | None:
        """Apply the condition of one FlowSchema if the condition differs.

        Raises the errors of `client` if the write fails.
        """
        schema = self._schemas.get(key)
        if schema is None:
            self._written.pop(key, None)
            return None
        fields = schema.to_dict()
        level = self._levels.get(Key("", _level_name(fields)))
        exists = level is not None and is_usable(level.name, level.to_dict().get("spec") or {})
        condition = desired_condition(fields, self._clock.now(), exists=exists)
        if condition is None:
            return None
        if self._is_frequent(key):
            return Result(self._random.randrange(*_LATER))
        with suppress(NotFound):
            client.apply(_applied(schema, condition), MANAGER, force=True, subresource="status")
        return None

    def _is_frequent(self, key: Key) -> bool:
        """Return whether a FlowSchema was written too often within the last minute; if it was not, record one write."""
        now, times = self._clock.monotonic(), self._written.setdefault(key, deque())
        while times and now - times[0] > _MINUTE:
            times.popleft()
        if len(times) >= _MOST:
            return True
        times.append(now)
        return False


def _applied(schema: Object, condition: Mapping[str, Any]) -> Object:
    # The apply contains the uid of the FlowSchema. Therefore the apply cannot create a deleted FlowSchema again.
    metadata = {"name": schema.name, "uid": schema.uid}
    head = {"kind": "FlowSchema", "apiVersion": API_VERSION, "metadata": metadata}
    return Object.from_dict({**head, "status": {"conditions": [condition]}})


def _level_name(schema: Mapping[str, Any]) -> str:
    name: str = ((schema.get("spec") or {}).get("priorityLevelConfiguration") or {}).get("name") or ""
    return name


def new_dangling_controller(
    informers: Informers, client: EngineClient, event_log: EventLog, *, clock: Clock, random: Random
) -> Controller:
    """Build the controller; the caller must do this before the informers sync."""
    schemas, levels = informers.informer(FLOW_SCHEMAS), informers.informer(LEVELS)
    schemas.add_index(_LEVEL, lambda schema: [_level_name(schema.to_dict())])

    def referring(change: Change) -> Iterable[Key]:
        return [schema.key for schema in schemas.lister.by_index(_LEVEL, change.object.name)]

    return Controller(
        CONTROLLER_NAME,
        DanglingCondition(schemas.lister, levels.lister, clock=clock, random=random),
        watches=[Watch(schemas, own_key), Watch(levels, referring)],
        client=client,
        log=event_log,
        clock=clock,
        random=random,
    )
