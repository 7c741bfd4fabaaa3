"""Reloads the EncryptionConfiguration of a running process when its file changes.

Guarantees:
- The process checks the configuration file once a minute, and uses a changed configuration only if its keys decrypt
  every data key of the log.
- If a changed file is invalid or lacks a key, the process logs and counts the failure, and continues with the previous
  configuration. Each later check tries the changed file again.

Source: apiserver `pkg/server/options/encryptionconfig/{controller,metrics}`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import structlog
from prometheus_client import Counter, Gauge

from ctrlmgr.clock import Clock
from ctrlmgr.errors import CtrlmgrError, SettingsError
from ctrlmgr.eventlog import EventLog
from ctrlmgr.eventlog.sqllog import SQLLog

if TYPE_CHECKING:
    from ctrlmgr.eventlog.encrypted.payload_codec import PayloadCodec
    from ctrlmgr.settings.sections import DatabaseSettings

log = structlog.get_logger(__name__)

_EVERY: Final = 60.0
"""The seconds between two checks of the configuration file."""

_RELOADS: Final = Counter(
    "apiserver_encryption_config_controller_automatic_reloads",
    "Reloads of the EncryptionConfiguration, by status and by the hash of the server's identity.",
    ["status", "apiserver_id_hash"],
)
_RELOADED_AT: Final = Gauge(
    "apiserver_encryption_config_controller_automatic_reload_last_timestamp_seconds",
    "The time of the last reload of the EncryptionConfiguration, by status and by the hash of the server's identity.",
    ["status", "apiserver_id_hash"],
)
_IN_USE: Final = Gauge(
    "apiserver_encryption_config_controller_last_config_info",
    "The hash of the EncryptionConfiguration in use, by the hash of the server's identity.",
    ["apiserver_id_hash", "hash"],
)


def key_reloads(
    settings: DatabaseSettings, log: EventLog, reloaded: Callable[[], object], *, clock: Clock
) -> Iterator[KeyReloads]:
    """Yield the runnable that reloads the log's EncryptionConfiguration, if the settings enable the reload.

    The runnable calls `reloaded` after each change of the configuration. Raises `SettingsError` if no file is
    configured.
    """
    file = settings.encryption_provider_config
    if settings.encryption_provider_config_automatic_reload and not file:
        raise SettingsError(
            "--encryption-provider-config-automatic-reload must be set with --encryption-provider-config"
        )
    if isinstance(log, SQLLog) and log.codec is not None:
        _show(log.codec.content_hash)
        if settings.encryption_provider_config_automatic_reload:
            yield KeyReloads(Path(file).expanduser(), log.codec, reloaded, clock=clock)


class KeyReloads:
    """A Runnable that reloads a file with an EncryptionConfiguration when the file changes."""

    name = "encryption-provider-config-automatic-reload-controller"

    def __init__(self, file: Path, codec: PayloadCodec, reloaded: Callable[[], object], *, clock: Clock) -> None:
        """Create a runnable that applies changes of `file` to `codec`, and that calls `reloaded` after each change."""
        self._file = file
        self._codec = codec
        self._reloaded = reloaded
        self._clock = clock

    def run(self, stop: threading.Event) -> None:
        """Check the configuration file once a minute until `stop` is set."""
        while not stop.wait(_EVERY):
            self.reload()

    def reload(self) -> bool:
        """Apply the configuration file if it has changed; return whether a changed configuration was applied."""
        try:
            changed = self._take()
        except CtrlmgrError as error:
            self._count("failure")
            log.error("error processing encryption config file", file=str(self._file), error=str(error))
            return False
        if changed:
            self._count("success")
            log.info("encryption config reloaded", file=str(self._file), hash=self._codec.content_hash)
            self._reloaded()
        return changed

    def _take(self) -> bool:
        from ctrlmgr.encryption.key_providers import content_hash, read_providers

        if content_hash(self._file) == self._codec.content_hash:
            return False
        self._codec.use(read_providers(self._file, clock=self._clock))
        _show(self._codec.content_hash)
        return True

    def _count(self, status: str) -> None:
        from ctrlmgr.encryption.kms.kms_cipher import identity_hash

        labels = status, identity_hash()
        _RELOADS.labels(*labels).inc()
        _RELOADED_AT.labels(*labels).set(self._clock.now() / 1_000_000)


def _show(content_hash: str) -> None:
    """Report in `/metrics` which configuration is in use, and no longer report the previous configuration."""
    from ctrlmgr.encryption.kms.kms_cipher import identity_hash

    _IN_USE.clear()
    _IN_USE.labels(identity_hash(), content_hash).set(1)
