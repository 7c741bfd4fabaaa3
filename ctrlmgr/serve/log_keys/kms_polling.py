"""Checks the KMS plugins of the log's EncryptionConfiguration regularly, and reports their health.

Guarantees:
- A plugin that does not answer delays neither requests nor health checks, because a separate thread calls the plugin.
- If the key id of a plugin changes, the log uses new data keys after the next check of the plugin.

The intervals are those at which kube-apiserver calls a plugin while clients probe kube-apiserver's health endpoints.
Without probes, kube-apiserver calls a healthy plugin once a minute, and an unhealthy plugin every ten seconds.

Source: apiserver `pkg/server/options/encryptionconfig/config.go`.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import structlog

from ctrlmgr.errors import CtrlmgrError
from ctrlmgr.eventlog import EventLog
from ctrlmgr.eventlog.sqllog import SQLLog

if TYPE_CHECKING:
    from ctrlmgr.encryption.kms.kms_cipher import KmsCipher
    from ctrlmgr.eventlog.encrypted.payload_codec import PayloadCodec

log = structlog.get_logger(__name__)

CHECK: Final = "kms-providers"
"""The name of the health check of KMS plugins."""
_HEALTHY: Final = 20.0
"""The seconds between two checks if all plugins are healthy."""
_UNHEALTHY: Final = 3.0
"""The seconds between two checks if a plugin is not healthy."""


def kms_polling(log: EventLog, *, reloads: bool) -> Iterator[KmsPolling]:
    """Yield the runnable that checks KMS plugins, if the log uses a KMS or if a reload may add a KMS."""
    codec = log.codec if isinstance(log, SQLLog) else None
    if codec is not None and (reloads or codec.services):
        yield KmsPolling(codec)


class KmsPolling:
    """A Runnable that checks KMS plugins."""

    name = CHECK

    def __init__(self, codec: PayloadCodec) -> None:
        """Check the plugins of the configuration that `codec` uses."""
        self._codec = codec

    def run(self, stop: threading.Event) -> None:
        """Check the plugins regularly until `stop` is set."""
        while not stop.wait(_HEALTHY if self.problem() is None else _UNHEALTHY):
            self.poll()

    def poll(self) -> None:
        """Check each KMS plugin once."""
        for service in self._codec.services:
            self._check(service)

    def _check(self, service: KmsCipher) -> None:
        was = service.problem
        try:
            service.check(self._codec.renew)
        except CtrlmgrError as error:
            if service in self._codec.services:  # a reload may have closed its connection
                log.error("kms plugin failed health check probe", name=service.name, error=str(error))
            return
        if was is not None:
            log.info("kms plugin is healthy", name=service.name)

    def problem(self) -> str | None:
        """Return the reason why a plugin is not healthy, in kube-apiserver's words; None if all plugins are healthy."""
        problems = [
            f"kms-provider-{number}: {service.problem}"
            for number, service in enumerate(self._codec.services)
            if service.problem is not None
        ]
        return f"[{', '.join(problems)}]" if len(problems) > 1 else "".join(problems) or None
