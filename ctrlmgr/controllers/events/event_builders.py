"""Builds Events in two forms: Events with a count, and Events with a series.

Both forms of Events are core/v1 objects, with fields in Go's order. Source: client-go's `tools/record/event.go` and
`tools/events/event_recorder.go`.
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


def key_of(wanted: CorrelatedEvent | Series) -> Key:
    """Return the namespace and name of an Event."""
    return Key(wanted.occurrence.subject.namespace or _DEFAULT_NAMESPACE, wanted.name)


def event_of(wanted: CorrelatedEvent | Series) -> Object:
    """Return the complete Event for a single occurrence or a series."""
    return Object.from_dict(_in_series(wanted) if isinstance(wanted, Series) else _counted(wanted))


def patch_of(wanted: CorrelatedEvent | Series) -> dict[str, Any]:
    """Return the strategic merge patch that increments the count of an existing Event."""
    if isinstance(wanted, Series):
        return {"series": _repeated(wanted)}
    return {"message": wanted.occurrence.message, **_latest(wanted)}


def _latest(sighting: CorrelatedEvent) -> dict[str, Any]:
    return {"lastTimestamp": format_time_seconds(sighting.occurrence.at), "count": sighting.times}


def _repeated(series: Series) -> dict[str, Any]:
    return {"count": series.times, "lastObservedTime": format_time(series.latest)}


def _counted(sighting: CorrelatedEvent) -> dict[str, Any]:
    told = sighting.occurrence
    return {
        **_head(sighting),
        "source": {"component": told.component},
        "firstTimestamp": format_time_seconds(sighting.first),
        **_latest(sighting),
        "type": told.type,
        "eventTime": None,
        "reportingComponent": told.component,
        "reportingInstance": "",
    }


def _in_series(series: Series) -> dict[str, Any]:
    told = series.first
    return {
        **_head(series),
        "source": {},
        "firstTimestamp": None,
        "lastTimestamp": None,
        "type": told.type,
        "eventTime": format_time(told.at),
        **({"series": _repeated(series)} if series.times > 1 else {}),
        "action": told.action,
        **({"related": told.related} if told.related is not None else {}),
        "reportingComponent": told.component,
        "reportingInstance": told.instance,
    }


def _head(wanted: CorrelatedEvent | Series) -> dict[str, Any]:
    key, told = key_of(wanted), wanted.occurrence
    return {
        "kind": "Event",
        "apiVersion": "v1",
        "metadata": {"name": key.name, "namespace": key.namespace},
        "involvedObject": told.subject,
        "reason": told.reason,
        "message": told.message,
    }
