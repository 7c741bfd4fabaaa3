"""The two forms of an Event: counted, and with a series. Both are objects of core/v1, with fields in Go's order.

Kubernetes: `tools/record/event.go` and `tools/events/event_recorder.go` of client-go.
"""

from __future__ import annotations

from typing import Any, Final

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key
from ctrlmgr.clock import format_time, format_time_seconds
from ctrlmgr.controllers.events.correlation import Sighting
from ctrlmgr.controllers.events.series import Series

_DEFAULT_NAMESPACE: Final = "default"
"""Where Events about cluster-scoped objects are."""
_AFTER_SERIES: Final = ("action", "related", "reportingComponent", "reportingInstance")
"""The fields that Go writes after the series."""


def key_of(wanted: Sighting | Series) -> Key:
    """Return the namespace and name of an Event."""
    return Key(wanted.told.subject.namespace or _DEFAULT_NAMESPACE, wanted.name)


def desired_event(wanted: Sighting | Series, current: Object | None) -> Object:
    """Return the Event to write: `current` counted on, or a new one."""
    return _in_series(wanted, current) if isinstance(wanted, Series) else _counted(wanted, current)


def _counted(sighting: Sighting, current: Object | None) -> Object:
    told = sighting.told
    latest = {"lastTimestamp": format_time_seconds(told.at), "count": sighting.times}
    if current is not None:
        return Object.from_dict({**current.to_dict(), "message": told.message, **latest})
    fields = {
        **_head(sighting),
        "source": {"component": told.component},
        "firstTimestamp": format_time_seconds(sighting.first),
        **latest,
        "type": told.type,
        "eventTime": None,
        "reportingComponent": told.component,
        "reportingInstance": "",
    }
    return Object.from_dict(fields)


def _in_series(series: Series, current: Object | None) -> Object:
    told = series.first
    if current is not None:
        return Object.from_dict(_with_series(current.to_dict(), series))
    fields = {
        **_head(series),
        "source": {},
        "firstTimestamp": None,
        "lastTimestamp": None,
        "type": told.type,
        "eventTime": format_time(told.at),
        "action": told.action,
        **({"related": told.related} if told.related is not None else {}),
        "reportingComponent": told.component,
        "reportingInstance": told.instance,
    }
    return Object.from_dict(fields if series.times == 1 else _with_series(fields, series))


def _with_series(fields: dict[str, Any], series: Series) -> dict[str, Any]:
    repeated = {"count": series.times, "lastObservedTime": format_time(series.latest)}
    after: dict[str, Any] = {name: fields[name] for name in _AFTER_SERIES if name in fields}
    before = {name: value for name, value in fields.items() if name not in after}
    return {**before, "series": repeated, **after}


def _head(wanted: Sighting | Series) -> dict[str, Any]:
    key, told = key_of(wanted), wanted.told
    return {
        "kind": "Event",
        "apiVersion": "v1",
        "metadata": {"name": key.name, "namespace": key.namespace},
        "involvedObject": told.subject,
        "reason": told.reason,
        "message": told.message,
    }
