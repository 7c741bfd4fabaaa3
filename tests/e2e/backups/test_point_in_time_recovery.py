"""Tests that PostgreSQL's point-in-time recovery restores the log as it was before a mistake."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from ctrlmgr.api.resource import PODS
from ctrlmgr.clock import SystemClock
from ctrlmgr.eventlog import migrate_log, open_log, verify
from ctrlmgr.eventlog.sqllog import SQLLog
from ctrlmgr.testing.eventlog_contract import AUTHOR, add, names, thing
from ctrlmgr.testing.postgres import PostgresCluster, find_program
from tests.e2e.serving import until

pytestmark = [pytest.mark.postgres, pytest.mark.slow]

RESTORE_POINT = "before-the-mistake"


class RecoveredPostgres(PostgresCluster):
    """A server that replays the archived WAL on a base backup, up to the restore point, and then accepts writes."""

    def __init__(self, primary: PostgresCluster, backup: Path, archive: Path) -> None:
        """Recover a copy of the base backup; the new server has the password of `primary`."""
        self._backup = backup
        recovery = {
            "restore_command": f"cp {archive}/%f %p",
            "recovery_target_name": RESTORE_POINT,
            "recovery_target_action": "promote",
        }
        super().__init__(settings=recovery, standby_of=primary)

    def _copy(self, primary: PostgresCluster) -> None:
        shutil.copytree(self._backup, self._data)
        (self._data / "recovery.signal").touch()
        owner = self._data.parent.stat()
        for path in (self._data, *self._data.rglob("*")):
            os.chown(path, owner.st_uid, owner.st_gid)


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that the account of the PostgreSQL server can write to."""
    with tempfile.TemporaryDirectory(prefix="ctrlmgr-archive-") as name:
        Path(name).chmod(0o777)
        yield Path(name)


def opened(url: str) -> SQLLog:
    log = open_log(url, clock=SystemClock(), random=random.Random(1))
    assert isinstance(log, SQLLog)
    return log


def test_the_log_is_restored_as_it_was_at_a_restore_point(folder: Path) -> None:
    archive, backup = folder / "archive", folder / "backup"
    archive.mkdir()
    archive.chmod(0o777)
    archiving = {"archive_mode": "on", "archive_command": f"cp %p {archive}/%f"}
    with PostgresCluster(settings=archiving) as primary:
        url = primary.url()
        migrate_log(url, clock=SystemClock(), random=random.Random(2))
        with closing(opened(url)) as log:
            log.append([add(thing("a"))], author=AUTHOR)
            program = find_program("initdb").resolve().with_name("pg_basebackup")
            source = url.replace("+psycopg", "")
            subprocess.run([program, "--pgdata", backup, "--dbname", source, "--checkpoint", "fast"], check=True)
            log.append([add(thing("b"))], author=AUTHOR)
            primary.execute(f"SELECT pg_create_restore_point('{RESTORE_POINT}')")
            log.append([add(thing("mistake"))], author=AUTHOR)
        primary.stop()  # archives the last WAL segment
        with RecoveredPostgres(primary, backup, archive) as recovered:
            until(lambda: recovered.execute("SELECT pg_is_in_recovery()") == [(False,)])
            check_restored(recovered.url())


def check_restored(url: str) -> None:
    """Assert that the log ends before the mistake, and that a new incarnation continues it."""
    with closing(opened(url)) as log:
        assert verify(log).events == 2
        assert names(log.snapshot(PODS).objects) == ["a", "b"]
        log.begin_epoch("restored", above=1000)
        [event] = log.append([add(thing("c"))], author=AUTHOR)
        assert event.revision > 1000
        assert verify(log).events == 3
