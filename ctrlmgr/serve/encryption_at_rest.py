"""Checks at the start of a serving process that its keys decrypt the log.

Guarantees: a process whose keys are missing or wrong does not start, and changes nothing in the log.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ctrlmgr.errors import LogUnavailable, SettingsError
from ctrlmgr.eventlog.memory_log import MemoryEventLog

if TYPE_CHECKING:
    from ctrlmgr.eventlog.sqllog import SQLLog

_FLAG: Final = "--encryption-provider-config"


def require_keys(log: SQLLog | MemoryEventLog) -> None:
    """Check the keys of a log, and add the data keys that are missing.

    Raises `SettingsError` if a key is missing or wrong. A log in memory is not encrypted.
    """
    if isinstance(log, MemoryEventLog):
        return
    if log.codec is None:
        if keys := log.data_keys.all():
            kinds = ", ".join(sorted({key.resource for key in keys}))
            raise SettingsError(f"the log contains encrypted objects ({kinds}); give their keys with {_FLAG}")
        return
    try:
        log.codec.check()
    except LogUnavailable as error:
        raise SettingsError(f"{_FLAG}: {error}") from error
    log.codec.prepare()
