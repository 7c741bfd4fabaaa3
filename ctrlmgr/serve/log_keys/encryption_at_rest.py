"""Checks at the start of a serving process that the process's keys decrypt the log.

Guarantees: a process whose keys are missing or wrong does not start, and changes nothing in the log.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ctrlmgr.api.resource import Resource
from ctrlmgr.errors import LogUnavailable, SettingsError
from ctrlmgr.eventlog import EventLog
from ctrlmgr.eventlog.sql_reading import SQLReading
from ctrlmgr.eventlog.sqllog import SQLLog

_FLAG: Final = "--encryption-provider-config"


def require_keys(log: EventLog) -> None:
    """Check the encryption keys of a log, and add missing data keys to the log.

    Raises `SettingsError` if a key is missing or wrong, and `LogUnavailable` if a KMS plugin is not healthy. A log in
    memory is never encrypted.
    """
    if not isinstance(log, SQLLog):
        return
    if log.codec is None:
        if keys := log.data_keys.all():
            kinds = ", ".join(sorted({key.resource for key in keys}))
            raise SettingsError(f"the log contains encrypted objects ({kinds}); give their keys with {_FLAG}")
        return
    for service in log.codec.services:
        service.check()
    try:
        log.codec.check()
    except LogUnavailable as error:
        raise SettingsError(f"{_FLAG}: {error}") from error
    log.codec.prepare()


def encrypted_resources(log: EventLog) -> Callable[[Resource], bool] | None:
    """Return a function that returns whether a log encrypts a resource; None if the log encrypts none."""
    return log.codec.encrypts if isinstance(log, SQLReading) and log.codec is not None else None
