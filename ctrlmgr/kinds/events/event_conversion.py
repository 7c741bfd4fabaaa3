"""Converts Events between events.k8s.io and the core group; some fields have other names in the core group.

Guarantees: converting an Event and converting it back loses nothing. The converted Event is a new dict whose values are
not copied.

Source: Kubernetes `pkg/apis/events/v1/conversion.go`.
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
"""The fields of an events.k8s.io/v1 Event that have another name in the core group, with this name."""

_NAMES_BACK = {there: here for here, there in _NAMES.items()}


def to_core(fields: Unstructured) -> Unstructured:
    """Convert an events.k8s.io/v1 Event to a core Event."""
    return _renamed(fields, _NAMES, "v1")


def from_core(fields: Unstructured) -> Unstructured:
    """Convert a core Event to an events.k8s.io/v1 Event."""
    return _renamed(fields, _NAMES_BACK, "events.k8s.io/v1")


def _renamed(fields: Unstructured, names: Mapping[str, str], api_version: str) -> Unstructured:
    return {names.get(name, name): value for name, value in fields.items()} | {"apiVersion": api_version}
