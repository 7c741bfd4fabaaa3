"""Sends audit events to a webhook in batches, on its own thread.

Guarantees:
- If the webhook's mode is `blocking` (`Blocking`), requests wait for the webhook; in the other modes, no request waits.
  An event that does not fit into the buffer, or that `_TRIES` tries cannot send, is counted and lost.
- When the process stops, the remaining events are sent once, without retries.

Source: apiserver `plugin/pkg/audit/webhook/webhook.go`, `pkg/util/webhook`.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

import structlog
import urllib3

from ctrlmgr.audit.batches import Batches, Batching
from ctrlmgr.audit.request_events import WHOLE, Form, StageEvent, lines, portions
from ctrlmgr.clock import Clock
from ctrlmgr.metrics import AUDIT_ERRORS
from ctrlmgr.server.workers import Workers
from ctrlmgr.settings.kubeconfig import Access, load

log = structlog.get_logger(__name__)

_AT_A_TIME: Final = 8
"""Maximum number of concurrent calls of the webhook in the blocking mode."""

_TRIES: Final = 5
_FACTOR: Final = 1.5
"""The factor by which each pause between retries is longer than the previous pause."""
_PATIENCE: Final = 30.0
"""Maximum duration of one call of the webhook, in seconds."""
_HEAD = b'{"kind":"EventList","apiVersion":"audit.k8s.io/v1","metadata":{},"items":['
_WORTH_A_RETRY = frozenset((408, 429))


class _Problem(NamedTuple):
    """Raised if audit events could not be sent; the message contains the reason."""

    words: str
    passes: bool = True
    """Whether another attempt may succeed."""


class ToWebhook:
    """A `Backend` that sends audit events to the server that a kubeconfig names."""

    is_strict = False

    def __init__(
        self,
        config: Path,
        batching: Batching,
        backoff: float,
        form: Form = WHOLE,
        *,
        largest: int | None = None,
        clock: Clock,
    ) -> None:
        """Read the kubeconfig that `config` names; the first retry follows after `backoff` seconds.

        Raises `SettingsError` if the kubeconfig cannot be used. `form` encodes the events; one call sends at most
        `largest` bytes.
        """
        self._form = form
        self._largest = largest
        self._access: Access = load([config])
        self._backoff = backoff
        self._clock = clock
        self._stopping = threading.Condition()
        self._is_stopping = False
        self._batches = Batches(batching, self._send, name="audit webhook", clock=clock, dropped=_lost)
        options = self._access.pool_options()
        self._pool = urllib3.PoolManager(maxsize=_AT_A_TIME, timeout=_PATIENCE, retries=False, **options)

    def process_events(self, events: Sequence[StageEvent]) -> bool:
        """Queue audit events for sending; return False if an event exceeds the size limit."""
        encoded = lines(events, self._form)
        self._batches.add(encoded)
        return len(encoded) == len(events)

    def send(self, event: StageEvent) -> bool:
        """Send an audit event now; return whether the other server accepted it. The method is thread-safe."""
        line = self._form(event)
        if line is None:
            return False
        return self._deliver([line])

    def start(self) -> None:
        """Start the thread."""
        self._batches.start()

    def stop(self) -> None:
        """Send the queued audit events, and stop the thread."""
        with self._stopping:
            self._is_stopping = True
            self._stopping.notify_all()
        self._batches.stop()
        self._pool.clear()

    def _send(self, encoded: Sequence[bytes]) -> None:
        for portion in portions(encoded, self._largest):
            self._deliver(portion)

    def _deliver(self, encoded: Sequence[bytes]) -> bool:
        body, pause = _HEAD + b",".join(each.rstrip() for each in encoded) + b"]}", self._backoff
        left = _TRIES
        while (problem := self._try(body)) is not None:
            left -= 1
            if not left or not problem.passes or not self._wait(pause):
                break
            pause *= _FACTOR
        else:
            return True
        log.warning("sending audit events failed", server=self._access.server, events=len(encoded), error=problem.words)
        _lost(len(encoded))
        return False

    def _try(self, body: bytes) -> _Problem | None:
        """Make one attempt to send events; return the problem, or None if the attempt succeeded.

        If the other server rejects the events, the method does not retry.
        """
        headers = {"content-type": "application/json", **self._access.headers()}
        try:
            answer = self._pool.request("POST", self._access.server, body=body, headers=headers)
        except urllib3.exceptions.HTTPError as error:
            return _Problem(str(error) or type(error).__name__)
        if answer.status < 300:
            return None
        passes = answer.status >= 500 or answer.status in _WORTH_A_RETRY
        return _Problem(f"it answered {answer.status}", passes)

    def _wait(self, seconds: float) -> bool:
        """Wait before the next attempt; return False if the caller should make no further attempt."""
        deadline = self._clock.monotonic() + seconds
        with self._stopping:
            while not self._is_stopping and (rest := deadline - self._clock.monotonic()) > 0:
                self._clock.wait(self._stopping, rest)
            return not self._is_stopping


class Blocking:
    """A `SlowBackend` that sends each audit event before the event's request continues."""

    def __init__(self, webhook: ToWebhook, *, is_strict: bool) -> None:
        """Create a backend that sends through `webhook`.

        If `is_strict` is set, a request whose audit event cannot be sent is refused.
        """
        self._webhook = webhook
        self._workers = Workers(_AT_A_TIME)
        self.is_strict = is_strict

    async def store(self, event: StageEvent) -> bool:
        """Send an audit event; return whether the other server accepted it."""
        return await self._workers.run(lambda: self._webhook.send(event))

    def start(self) -> None:
        """Start the threads."""
        self._workers.start()

    def stop(self) -> None:
        """Stop the sending threads and their retries."""
        self._workers.stop()
        self._webhook.stop()


def _lost(count: int) -> None:
    AUDIT_ERRORS.labels("webhook").inc(count)
