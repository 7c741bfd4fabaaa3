"""The kinds that are served in another version than they are stored in, and the way from one to the other.

Guarantees: a conversion loses nothing on the way there and back; it changes the dict it is given, and shares the rest.

- events.k8s.io/v1 Event is stored as v1 Event: the same fields under other names (Kubernetes'
  `pkg/apis/events/v1/conversion.go`).
- autoscaling/v1 HorizontalPodAutoscaler is stored as autoscaling/v2, see `kinds.autoscaling.versions`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.kinds.autoscaling import versions as autoscalers

_EVENT_NAMES: Mapping[str, str] = {
    "regarding": "involvedObject",
    "note": "message",
    "reportingController": "reportingComponent",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
}
"""What fields of an events.k8s.io/v1 Event are called in v1, where that differs."""

_EVENT_NAMES_BACK = {there: here for here, there in _EVENT_NAMES.items()}


class Conversion(NamedTuple):
    """How objects of a kind become the stored one, and stored ones this kind's; both keep the object's metadata."""

    to_stored: Callable[[Unstructured], Unstructured]
    from_stored: Callable[[Unstructured], Unstructured]


def _renamed(fields: Unstructured, names: Mapping[str, str], api_version: str) -> Unstructured:
    return {names.get(name, name): value for name, value in fields.items()} | {"apiVersion": api_version}


CONVERSIONS: Mapping[tuple[str, str], Conversion] = {
    ("events.k8s.io/v1", "Event"): Conversion(
        lambda fields: _renamed(fields, _EVENT_NAMES, "v1"),
        lambda fields: _renamed(fields, _EVENT_NAMES_BACK, "events.k8s.io/v1"),
    ),
    ("autoscaling/v1", "HorizontalPodAutoscaler"): Conversion(autoscalers.to_v2, autoscalers.to_v1),
}
"""The conversions by the apiVersion and kind that are converted."""
