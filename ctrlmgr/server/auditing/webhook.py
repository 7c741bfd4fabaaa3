"""Sends audit events to another server, many at a time, on a thread of its own.

Guarantees:
- No request waits for it. Events that do not fit into the buffer, or could not be sent in `_TRIES` attempts, are
  counted and lost.
- When the process ends, what is left is sent once more, and not tried again.

Rules: apiserver `plugin/pkg/audit/webhook/webhook.go`, `pkg/util/webhook`.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import httpx
import structlog

from ctrlmgr.audit.batches import Batches, Batching
from ctrlmgr.clock import Clock
from ctrlmgr.metrics import AUDIT_ERRORS
from ctrlmgr.settings.kubeconfig import Access, load

log = structlog.get_logger(__name__)

_TRIES: Final = 5
_FACTOR: Final = 1.5
"""By how much longer each wait is than the one before."""
_PATIENCE: Final = 30.0
"""Seconds that the other server may take to answer."""
_HEAD = b'{"kind":"EventList","apiVersion":"audit.k8s.io/v1","metadata":{},"items":['
_WORTH_A_RETRY = frozenset((408, 429))


class ToWebhook:
    """Sends events to where a kubeconfig says: a `Backend`."""

    def __init__(self, config: Path, batching: Batching, backoff: float, *, clock: Clock) -> None:
        """Read `config`; the first retry comes after `backoff` seconds. Raises `SettingsError`."""
        self._access: Access = load([config])
        self._backoff = backoff
        self._clock = clock
        self._stopping = threading.Condition()
        self._is_stopping = False
        self._batches = Batches(batching, self._send, name="audit webhook", clock=clock, dropped=_lost)
        context = self._access.context
        self._client = httpx.Client(verify=context if context is not None else True, timeout=_PATIENCE, trust_env=False)

    def tell(self, line: bytes) -> None:
        """Have an event sent soon."""
        self._batches.add(line)

    def start(self) -> None:
        """Start the thread."""
        self._batches.start()

    def stop(self) -> None:
        """Send what is left, and end the thread."""
        with self._stopping:
            self._is_stopping = True
            self._stopping.notify_all()
        self._batches.stop()
        self._client.close()

    def _send(self, lines: Sequence[bytes]) -> None:
        body, pause = _HEAD + b",".join(line.rstrip() for line in lines) + b"]}", self._backoff
        for attempt in range(1, _TRIES + 1):
            problem = self._try(body)
            if problem is None:
                return
            if attempt == _TRIES or not self._wait(pause):
                break
            pause *= _FACTOR
        log.warning("audit events could not be sent", server=self._access.server, events=len(lines), error=problem)
        _lost(len(lines))

    def _try(self, body: bytes) -> str | None:
        """Return why a body could not be sent, None if it was; what the other server refuses is not sent again."""
        headers = {"content-type": "application/json", **self._access.headers()}
        try:
            answer = self._client.post(self._access.server, content=body, headers=headers)
        except httpx.HTTPError as error:
            return str(error) or type(error).__name__
        if answer.status_code < 300:
            return None
        if answer.status_code < 500 and answer.status_code not in _WORTH_A_RETRY:
            log.warning("audit events were refused", server=self._access.server, code=answer.status_code)
            AUDIT_ERRORS.labels("webhook").inc()
            return None
        return f"it answered {answer.status_code}"

    def _wait(self, seconds: float) -> bool:
        """Wait; return whether there is to be another try."""
        deadline = self._clock.monotonic() + seconds
        with self._stopping:
            while not self._is_stopping and (rest := deadline - self._clock.monotonic()) > 0:
                self._clock.wait(self._stopping, rest)
            return not self._is_stopping


def _lost(count: int) -> None:
    AUDIT_ERRORS.labels("webhook").inc(count)
