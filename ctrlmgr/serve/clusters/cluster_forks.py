"""Fills the directory of a new cluster with a fork of another cluster's log."""

from __future__ import annotations

from pathlib import Path
from random import Random

from ctrlmgr.clock import Clock
from ctrlmgr.eventlog import migrate_log
from ctrlmgr.eventlog.copying.file_fork import fork_file
from ctrlmgr.eventlog.copying.log_fork import fork
from ctrlmgr.inspection import moment_parser
from ctrlmgr.inspection.database import open_database

DATABASE = "ctrlmgr.db"
"""The name of the log in the directory of a cluster."""


def fork_cluster(source: Path, target: Path, at: str, *, is_open: bool, clock: Clock, random: Random) -> None:
    """Fork the log of the cluster in the directory `source` into the directory `target`.

    The fork ends at the revision or time `at`, by default at the newest revision. `is_open` says whether the cluster
    runs. Raises the errors of `moment_parser.resolve`, `fork` and `fork_file`.
    """
    if not at:
        fork_file(source / DATABASE, target / DATABASE, is_open=is_open, clock=clock, random=random)
        return
    url = f"sqlite:///{target / DATABASE}"
    with open_database(f"sqlite:///{source / DATABASE}") as opened:
        revision = moment_parser.resolve(opened, at, now=clock.now())
        migrate_log(url, clock=clock, random=random)
        fork(lambda statement, given: opened.query(statement, given).rows, url, revision, clock=clock, random=random)
