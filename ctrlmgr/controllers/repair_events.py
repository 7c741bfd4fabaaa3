"""Events (core/v1) that tell of findings, for `kubectl describe service` to show.

Guarantees: the same finding about the same object is one Event, however often and by however many processes it is
found: its count and last time say how often and until when. An Event that cannot be written stops nobody.
"""

from __future__ import annotations

import hashlib

import msgspec
import structlog

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import EVENTS, Key
from ctrlmgr.client import Client
from ctrlmgr.clock import Clock, format_time_seconds
from ctrlmgr.errors import ApiError
from ctrlmgr.eventlog import EventLog

log = structlog.get_logger(__name__)

_DEFAULT_NAMESPACE = "default"
"""Where Events about cluster-scoped objects are (client-go `tools/record`)."""
_SUFFIX = 16
"""Hexadecimal digits that follow the object's name in the Event's, as many as client-go's time stamp has."""


class _Head(msgspec.Struct, rename="camel"):
    kind: str
    api_version: str


class _Counted(msgspec.Struct):
    count: int = 1


_decode_head = msgspec.json.Decoder(_Head).decode


class EventRecorder:
    """Writes warnings in the name of one component, reading what it wrote before from the log."""

    def __init__(self, event_log: EventLog, component: str, action: str = "", *, clock: Clock) -> None:
        """Record for `component`; `action` is what it was doing, in Kubernetes' words, if it has any for it."""
        self._log = event_log
        self._component = component
        self._action = action
        self._clock = clock

    def warn(self, subject: Object, reason: str, message: str, client: Client) -> None:
        """Write a warning about `subject`, or count it once more."""
        name = f"{subject.name}.{_digest(subject, reason, message)}"
        key = Key(subject.namespace or _DEFAULT_NAMESPACE, name)
        now = format_time_seconds(self._clock.now())
        before = self._log.get(EVENTS, key)
        try:
            if before is None:
                client.create(self._event(key, subject, reason, message, now))
            else:
                client.update(_again(before, now))
        except ApiError as error:  # somebody else counted at the same moment, or the namespace is on its way out
            log.debug("event not recorded", key=str(key), reason=reason, error=str(error))

    def _event(self, key: Key, subject: Object, reason: str, message: str, now: str) -> Object:
        """Return a new Event, its fields in Go's order."""
        fields = {
            "kind": "Event",
            "apiVersion": "v1",
            "metadata": {"name": key.name, "namespace": key.namespace},
            "involvedObject": _reference(subject),
            "reason": reason,
            "message": message,
            "source": {"component": self._component},
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
            "type": "Warning",
            "eventTime": None,
            **({"action": self._action} if self._action else {}),
            "reportingComponent": self._component,
            "reportingInstance": "",
        }
        return Object.from_dict(fields)


def _digest(subject: Object, reason: str, message: str) -> str:
    return hashlib.sha256(f"{subject.uid}\0{reason}\0{message}".encode()).hexdigest()[:_SUFFIX]


def _reference(subject: Object) -> dict[str, str]:
    head = _decode_head(subject.body)
    fields = {
        "kind": head.kind,
        "namespace": subject.namespace,
        "name": subject.name,
        "uid": subject.uid,
        "apiVersion": head.api_version,
        "resourceVersion": str(subject.revision or ""),
    }
    return {field: value for field, value in fields.items() if value}


def _again(event: Object, now: str) -> Object:
    fields = event.to_dict()
    return Object.from_dict({**fields, "lastTimestamp": now, "count": event.view(_Counted).count + 1})
