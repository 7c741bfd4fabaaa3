"""Registers the webhooks of apps in the cluster, and removes them when the process stops.

Guarantees: if an earlier run has left a webhook configuration, the process replaces it, or removes it if the app no
longer has such functions. When the process stops, it removes a webhook configuration, unless another process has
registered the same configuration since. Only the leader registers webhooks. If several processes run an app, the API
server calls only the leader's webhooks. If the processes are behind a Service, the API server calls the webhooks of all
processes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Final

import structlog

from ctrlmgr.api.object import Object
from ctrlmgr.client import EngineClient
from ctrlmgr.clock import Clock
from ctrlmgr.errors import Conflict, CtrlmgrError, Fenced, Forbidden, NotFound, SettingsError
from ctrlmgr.framework.install import MANAGER
from ctrlmgr.framework.remote.api_server_log import RemoteLog
from ctrlmgr.framework.webhooks.webhook_configurations import RUN, Registered

log = structlog.get_logger(__name__)

_RETRY: Final = 1.0
_FAREWELL: Final = 0.5
"""Seconds for which webhooks are still served after their removal, because an API server notices the removal with a
delay.
"""


class Registration:
    """A runnable that registers webhooks while it runs."""

    name = "webhook-registration"

    def __init__(
        self,
        desired: Callable[[], Sequence[Registered]],
        event_log: RemoteLog,
        client: EngineClient,
        *,
        label: str = "",
        run: str = "",
        clock: Clock,
    ) -> None:
        """Create a runnable that registers the webhook configurations that `desired` returns.

        `label` is the address for log lines, and `run` identifies this process.
        """
        self._desired = desired
        self._log = event_log
        self._client = client
        self._label = label
        self._run = run
        self._clock = clock

    def run(self, stop: threading.Event) -> None:
        """Register the webhooks, wait for `stop`, and remove the registered webhooks.

        Raises `SettingsError` if the API server refuses a webhook configuration.
        """
        desired = self._desired()
        while not stop.is_set():
            try:
                self._register(desired)
            except Fenced:
                raise
            except CtrlmgrError as error:
                if not error.retryable:
                    raise SettingsError(f"run: the webhooks cannot be registered: {error}") from error
                log.warning("retrying registration of webhooks", error=str(error), retry_in=_RETRY)
                stop.wait(_RETRY)
            else:
                stop.wait()
        self._remove(desired)

    def _register(self, desired: Sequence[Registered]) -> None:
        for each in desired:
            if each.wanted is not None:
                self._client.apply(each.wanted, MANAGER, force=True)
                names = [hook["name"] for hook in each.wanted.to_dict()["webhooks"]]
                log.info("webhooks registered", configuration=str(each.key), address=self._label, webhooks=names)
            else:
                self._remove_left(each)

    def _remove_left(self, each: Registered) -> None:
        """Remove a webhook configuration of an earlier run if the app no longer has functions for it."""
        try:
            left = self._log.get(each.resource, each.key)
        except Forbidden:  # An app without admission functions needs no permission to read configurations.
            return
        if left is not None:
            self._delete(left)
            log.info("webhooks of an earlier run removed", configuration=str(each.key))

    def _remove(self, desired: Sequence[Registered]) -> None:
        removed = False
        for each in desired:
            if each.wanted is None:
                continue
            try:
                stored = self._log.get(each.resource, each.key)
                if stored is not None and stored.annotations.get(RUN) == self._run:
                    self._delete(stored)
                    removed = True
            except Fenced:
                raise  # Another process leads, and registers its own configurations.
            except CtrlmgrError as error:
                log.warning("removing webhooks failed", configuration=str(each.key), error=str(error))
        if removed:
            log.info("webhooks removed")
            pause = threading.Condition()
            with pause:
                self._clock.wait(pause, _FAREWELL)

    def _delete(self, stored: Object) -> None:
        """Delete a webhook configuration, unless it was changed or deleted since this process wrote it."""
        try:
            self._client.delete(stored, "Background")
        except (Conflict, NotFound):
            log.debug("webhooks changed by another process", configuration=stored.name)
