"""Encodes an audit event (a stage of a request) in the formats of all backends.

Guarantees:
- All backends share the encoded form of an event, so an event is encoded at most once in each format. Only the file
  backend encodes events again, because it encodes many events in one call.
- If an event exceeds a backend's size limit, the backend gets the event without bodies and with the annotation
  `audit.k8s.io/truncated`. If an event without bodies is still too large for a backend, the event is dropped and
  counted.

Source: apiserver `pkg/audit/format.go` (`EventString`), `plugin/pkg/audit/truncate/truncate.go`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from typing import Final, TypeAlias

import msgspec

from ctrlmgr.audit.audit_event import encode_lines, event_of, line, reference
from ctrlmgr.audit.policy import Stage
from ctrlmgr.audit.request_record import Record
from ctrlmgr.authentication.user import User
from ctrlmgr.clock import format_time
from ctrlmgr.metrics import AUDIT_ERRORS


class StageEvent(msgspec.Struct, gc=False):
    """The audit event of one stage of a request; only one thread may use it."""

    record: Record
    stage: Stage
    """The stage that the request has reached."""
    now: int
    """The time at which the request reached the stage, in microseconds since 1970."""
    _line: bytes | None = None

    @property
    def line(self) -> bytes:
        """The audit event as one line of JSON."""
        if self._line is None:
            self._line = line(self.record, self.stage, self.now)
        return self._line

    def fitting(self, largest: int) -> bytes | None:
        """Return the event as one line of JSON of at most `largest` bytes; a larger event is encoded without bodies.

        The method returns None if the event without bodies has more than `largest` bytes.
        """
        text = self.line
        if len(text) > largest and self.record.wants_request:
            text = line(self.record, self.stage, self.now, truncated=True)
        return text if len(text) <= largest else None

    def text(self) -> bytes:
        """Return the event as one line of text in the legacy format."""
        record, head = self.record, self.record.head
        user, other = record.user or User(""), record.impersonated
        groups = _quoted(user.groups) if user.name and user.groups else "<none>"
        parts = {
            "id": head.id,
            "stage": self.stage,
            "ip": head.sources[0] if head.sources else "<unknown>",
            "method": record.attributes.verb,
            "user": user.name or "<none>",
            "groups": groups,
            "as": other.name if other is not None else "<self>",
            "asgroups": _quoted(other.groups) if other is not None and other.groups else "<lookup>",
            "user-agent": head.agent,
            "namespace": reference(record).namespace or "<none>",
            "uri": head.uri,
        }
        code = record.code if self.stage is not Stage.REQUEST_RECEIVED else "<deferred>"
        text = " ".join(f"{name}={_quote(value)}" for name, value in parts.items())
        return f'{_nanoseconds(record.received)} AUDIT: {text} response="{code}"\n'.encode()


Form: TypeAlias = Callable[[StageEvent], bytes | None]
"""Returns the data that a backend stores for an event, or None if the backend stores no data for the event."""

WHOLE: Final[Form] = attrgetter("line")
"""Returns an event as JSON with all bodies, regardless of the event's size."""


def form(*, legacy: bool = False, largest: int | None = None) -> Form:
    """Return the form of events for a backend: JSON or the legacy format, with at most `largest` bytes per event."""
    if largest is None:
        return StageEvent.text if legacy else WHOLE

    def fitting(event: StageEvent) -> bytes | None:
        text = event.fitting(largest)
        if text is None:
            AUDIT_ERRORS.labels("truncate").inc()
            return None
        return event.text() if legacy else text

    return fitting


def lines(events: Sequence[StageEvent], form_of: Form) -> Sequence[bytes]:
    """Return the encoded events for a backend; events that are too large for the backend are omitted."""
    return [encoded for event in events if (encoded := form_of(event)) is not None]


def together(events: Sequence[StageEvent], form_of: Form) -> tuple[bytes, int]:
    """Return the concatenated lines of several events for a file, and the number of lines."""
    if form_of is WHOLE:  # the default format of files: encode all lines together, without a copy of each line
        return encode_lines([event_of(each.record, each.stage, each.now) for each in events]), len(events)
    encoded = lines(events, form_of)
    return b"".join(encoded), len(encoded)


def portions(whole: Sequence[bytes], largest: int | None) -> Iterator[Sequence[bytes]]:
    """Yield lists of events with at most `largest` bytes each.

    An event of more than `largest` bytes is the only event of its list. If `largest` is None, one list contains all
    events.
    """
    if largest is None:
        yield whole
        return
    portion: list[bytes] = []
    size = 0
    for each in whole:
        if portion and size + len(each) > largest:
            yield portion
            portion, size = [], 0
        portion.append(each)
        size += len(each)
    if portion:
        yield portion


def _nanoseconds(microseconds: int) -> str:
    """Return a time in Go's RFC3339Nano format, whose fraction has no trailing zeros."""
    whole, _, fraction = format_time(microseconds).removesuffix("Z").partition(".")
    fraction = fraction.rstrip("0")
    return f"{whole}.{fraction}Z" if fraction else f"{whole}Z"


def _quote(text: str) -> str:
    return msgspec.json.encode(text).decode()


def _quoted(texts: Sequence[str]) -> str:
    return ",".join(_quote(text) for text in texts)
