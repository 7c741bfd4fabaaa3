"""The audit log of a serving process, put together from the settings.

Guarantees: without a policy there is none, and requests do not pay for it; a policy or a file that cannot be used is
refused before anything starts.
"""

from __future__ import annotations

import threading
from pathlib import Path
from random import Random
from typing import Protocol

from ctrlmgr.audit.batches import Batching
from ctrlmgr.audit.log_file import LogFile, Rotation
from ctrlmgr.audit.policy import read_policy
from ctrlmgr.clock import Clock
from ctrlmgr.inspection.requests import FILE, Store
from ctrlmgr.server.auditing.backends import ToFile, ToFileInBatches, ToStore
from ctrlmgr.server.auditing.step import Auditing, Backend
from ctrlmgr.server.auditing.webhook import ToWebhook
from ctrlmgr.settings import Settings


class _Kept(Protocol):
    """A backend, as it is started and stopped."""

    def start(self) -> None:
        """Begin."""

    def stop(self) -> None:
        """Keep what is left, and end."""


class AuditLog:
    """The backends of the audit log: a Runnable; `step` is what the chain is given."""

    name = "audit log"

    def __init__(self, settings: Settings, *, clock: Clock, random: Random) -> None:
        """Read the policy and open what it writes to; raises `SettingsError`."""
        said = settings.audit
        self._kept: list[_Kept] = []
        self.step: Auditing | None = None
        """None without a policy."""
        if not said.policy_file:
            return
        policy = read_policy(Path(said.policy_file).expanduser())
        backends: list[Backend] = []
        if said.log_path:
            file = _file(settings, clock=clock)
            backends.append(file)
            self._kept.append(file)
        if said.webhook_config_file:
            webhook = _webhook(settings, clock=clock)
            backends.append(webhook)
            self._kept.append(webhook)
        registers = []
        if said.keep_for:
            store = ToStore(Store(settings.data_path / FILE, said.keep_for, clock=clock), clock=clock)
            registers.append(store)
            self._kept.append(store)
        self.step = Auditing(policy, backends, registers, clock=clock, random=random)

    def run(self, stop: threading.Event) -> None:
        """Write until stopped, and then what is left."""
        for each in self._kept:
            each.start()
        stop.wait()
        for each in self._kept:
            each.stop()


def _file(settings: Settings, *, clock: Clock) -> ToFile | ToFileInBatches:
    said = settings.audit
    rotation = Rotation(said.log_maxsize, said.log_maxbackup, said.log_maxage, said.log_compress)
    file = ToFile(LogFile(said.log_path, rotation, clock=clock))
    if said.log_mode == "blocking":
        return file
    batching = Batching(said.log_batch_buffer_size, said.log_batch_max_size, said.log_batch_max_wait)
    return ToFileInBatches(file, batching, clock=clock)


def _webhook(settings: Settings, *, clock: Clock) -> ToWebhook:
    said = settings.audit
    batching = Batching(
        said.webhook_batch_buffer_size,
        said.webhook_batch_max_size,
        said.webhook_batch_max_wait,
        said.webhook_batch_throttle_qps,
        said.webhook_batch_throttle_burst,
    )
    file = Path(said.webhook_config_file).expanduser()
    return ToWebhook(file, batching, said.webhook_initial_backoff, clock=clock)
