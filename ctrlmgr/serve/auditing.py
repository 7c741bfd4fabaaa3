"""Creates the audit log of a serving process from the settings.

Guarantees: if the settings name no audit policy, the process has no audit log, and audit does not slow requests down.
An unusable policy or file raises an error before any component starts.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from ctrlmgr.api.resource import Resource
from ctrlmgr.audit.batches import Batching
from ctrlmgr.audit.log_file import LogFile, Rotation
from ctrlmgr.audit.policy import read_policy
from ctrlmgr.audit.request_events import form
from ctrlmgr.clock import Clock
from ctrlmgr.errors import SettingsError
from ctrlmgr.inspection.audited_requests import FILE, Store
from ctrlmgr.server.auditing.audit_backends import ToFile, ToFileInBatches, ToStore
from ctrlmgr.server.auditing.audit_filter import Auditing, Backend, SlowBackend
from ctrlmgr.settings import Settings

if TYPE_CHECKING:  # This module imports an HTTP client, which is needed only for a webhook.
    from ctrlmgr.server.auditing.audit_webhook import ToWebhook


class _ManagedBackend(Protocol):
    """A backend of the audit log that can be started and stopped."""

    def start(self) -> None:
        """Start the backend."""

    def stop(self) -> None:
        """Write the queued audit events, then stop."""


class AuditLog:
    """A Runnable that starts and stops the backends of the audit log; `step` is the audit step of the request chain."""

    name = "audit log"

    def __init__(self, settings: Settings, *, clock: Clock, hides: Callable[[Resource], bool] | None = None) -> None:
        """Read the policy and open the backends; raises `SettingsError` if the policy or a file is unusable.

        Requests for resources for which `hides` returns True are recorded without bodies.
        """
        options = settings.audit
        self.kept: list[_ManagedBackend] = []
        """The audit backends that are started and stopped with this runnable."""
        self.step: Auditing | None = None
        """The audit step of the request chain; None if there is no policy."""
        if not options.policy_file:
            return
        policy = read_policy(Path(options.policy_file).expanduser())
        policy.hides = hides
        backends: list[Backend] = []
        if options.log_path:
            file = _file(settings, clock=clock)
            backends.append(file)
            self.kept.append(file)
        slow: list[SlowBackend] = []
        if options.webhook_config_file:
            from ctrlmgr.server.auditing.audit_webhook import Blocking

            webhook = _webhook(settings, clock=clock)
            if options.webhook_mode == "batch":
                backends.append(webhook)
                self.kept.append(webhook)
            else:
                blocking = Blocking(webhook, is_strict=options.webhook_mode == "blocking-strict")
                slow.append(blocking)
                self.kept.append(blocking)
        registers = []
        if options.keep_for:
            store = ToStore(Store(settings.data_path / FILE, options.keep_for, clock=clock), clock=clock)
            registers.append(store)
            self.kept.append(store)
        self.step = Auditing(policy, backends, registers, slow, clock=clock)

    def run(self, stop: threading.Event) -> None:
        """Write audit events until `stop` is set, then write the queued events."""
        for each in self.kept:
            each.start()
        stop.wait()
        if self.step is not None:
            self.step.end_batch()  # The event loop may have ended during a round.
        for each in self.kept:
            each.stop()


def _file(settings: Settings, *, clock: Clock) -> ToFile | ToFileInBatches:
    options = settings.audit
    rotation = Rotation(options.log_maxsize, options.log_maxbackup, options.log_maxage, options.log_compress)
    largest = options.log_truncate_max_event_size if options.log_truncate_enabled else None
    desired = form(legacy=options.log_format == "legacy", largest=largest)
    file = ToFile(
        LogFile(options.log_path, rotation, clock=clock), desired, is_strict=options.log_mode == "blocking-strict"
    )
    if options.log_mode != "batch":
        return file
    batching = Batching(
        options.log_batch_buffer_size,
        options.log_batch_max_size,
        options.log_batch_max_wait,
        *_throttle(
            "log",
            enabled=options.log_batch_throttle_enable,
            qps=options.log_batch_throttle_qps,
            burst=options.log_batch_throttle_burst,
        ),
    )
    return ToFileInBatches(file, batching, desired, clock=clock)


def _webhook(settings: Settings, *, clock: Clock) -> ToWebhook:
    from ctrlmgr.server.auditing.audit_webhook import ToWebhook

    options = settings.audit
    batching = Batching(
        options.webhook_batch_buffer_size,
        options.webhook_batch_max_size,
        options.webhook_batch_max_wait,
        *_throttle(
            "webhook",
            enabled=options.webhook_batch_throttle_enable,
            qps=options.webhook_batch_throttle_qps,
            burst=options.webhook_batch_throttle_burst,
        ),
    )
    largest = options.webhook_truncate_max_event_size if options.webhook_truncate_enabled else None
    return ToWebhook(
        Path(options.webhook_config_file).expanduser(),
        batching,
        options.webhook_initial_backoff,
        form(largest=largest),
        largest=options.webhook_truncate_max_batch_size if options.webhook_truncate_enabled else None,
        clock=clock,
    )


def _throttle(which: str, *, enabled: bool, qps: float, burst: int) -> tuple[float, int]:
    """Return the maximum number of batches per second, and the burst; 0 batches per second means no limit."""
    if not enabled:
        return 0.0, 1
    for name, value in (("qps", qps), ("burst", burst)):
        if not value:
            raise SettingsError(
                f"audit.{which}_batch_throttle_{name} is 0; it must be greater than 0 if the throttle is enabled"
            )
    return qps, burst
