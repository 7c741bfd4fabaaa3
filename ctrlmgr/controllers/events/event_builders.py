"""Builds Events in two forms: Events with a count, and Events with a series.

Events of the older and of the newer API are core/v1 objects, with fields in Go's order. Source: client-go's
`tools/record/event.go` and `tools/events/event_recorder.go`.
"""

from __future__ import annotations

from typing import Any, Final

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key
from ctrlmgr.clock import format_time, format_time_seconds
from ctrlmgr.controllers.events.event_correlation import CorrelatedEvent
from ctrlmgr.controllers.events.series import Series

_DEFAULT_NAMESPACE: Final = "default"
"""The namespace of Events about cluster-scoped objects."""


def key_of(desired: CorrelatedEvent | Series) -> Key:
    """Return the namespace and name of an Event."""
    return Key(desired.occurrence.subject.namespace or _DEFAULT_NAMESPACE, desired.name)


def event_of(desired: CorrelatedEvent | Series) -> Object:
    """Return the complete Event for a single occurrence or for a series."""
    return Object.from_dict(_in_series(desired) if isinstance(desired, Series) else _counted(desired))


def patch_of(desired: CorrelatedEvent | Series) -> dict[str, Any]:
    """Return the strategic merge patch that increments the count of an existing Event."""
    if isinstance(desired, Series):
        return {"series": _repeated(desired)}
    return {"message": desired.occurrence.message, **_latest(desired)}


def _latest(sighting: CorrelatedEvent) -> dict[str, Any]:
    return {"lastTimestamp": format_time_seconds(sighting.occurrence.at), "count": sighting.times}


def _repeated(series: Series) -> dict[str, Any]:
    return {"count": series.times, "lastObservedTime": format_time(series.latest)}


def _counted(sighting: CorrelatedEvent) -> dict[str, Any]:
    occurrence = sighting.occurrence
    return {
        **_head(sighting),
        "source": {"component": occurrence.component},
        "firstTimestamp": format_time_seconds(sighting.first),
        **_latest(sighting),
        "type": occurrence.type,
        "eventTime": None,
        "reportingComponent": occurrence.component,
        "reportingInstance": "",
    }


def _in_series(series: Series) -> dict[str, Any]:
    occurrence = series.first
    return {
        **_head(series),
        "source": {},
        "firstTimestamp": None,
        "lastTimestamp": None,
        "type": occurrence.type,
        "eventTime": format_time(occurrence.at),
        **({"series": _repeated(series)} if series.times > 1 else {}),
        "action": occurrence.action,
        **({"related": occurrence.related} if occurrence.related is not None else {}),
        "reportingComponent": occurrence.component,
        "reportingInstance": occurrence.instance,
    }


def _head(desired: CorrelatedEvent | Series) -> dict[str, Any]:
    key, occurrence = key_of(desired), desired.occurrence
    return {
        "kind": "Event",
        "apiVersion": "v1",
        "metadata": {"name": key.name, "namespace": key.namespace},
        "involvedObject": occurrence.subject,
        "reason": occurrence.reason,
        "message": occurrence.message,
    }
