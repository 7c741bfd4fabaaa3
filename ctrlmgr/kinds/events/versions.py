"""Events of events.k8s.io and of the core group: the same fields, some under other names.

Guarantees: a conversion loses nothing on the way there and back; it changes the dict it is given, and shares the rest.
Source: Kubernetes' `pkg/apis/events/v1/conversion.go`.
"""

from __future__ import annotations

from collections.abc import Mapping

from ctrlmgr.api.unstructured import Unstructured

_NAMES: Mapping[str, str] = {
    "regarding": "involvedObject",
    "note": "message",
    "reportingController": "reportingComponent",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
}
"""What fields of an events.k8s.io/v1 Event are called in v1, where that differs."""

_NAMES_BACK = {there: here for here, there in _NAMES.items()}


def to_core(fields: Unstructured) -> Unstructured:
    """Turn an events.k8s.io/v1 Event into a core one."""
    return _renamed(fields, _NAMES, "v1")


def from_core(fields: Unstructured) -> Unstructured:
    """Turn a core Event into an events.k8s.io/v1 one."""
    return _renamed(fields, _NAMES_BACK, "events.k8s.io/v1")


def _renamed(fields: Unstructured, names: Mapping[str, str], api_version: str) -> Unstructured:
    return {names.get(name, name): value for name, value in fields.items()} | {"apiVersion": api_version}
