"""The control planes of runs: each run continues a copy of one log, which contains the setup."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from ctrlmgr.clock import Clock
from ctrlmgr.testing.served import ServerProcess
from ctrlmgr.trial.run_record import database_url, opened_log
from ctrlmgr.trial.running.administrator import Administrator
from ctrlmgr.trial.running.quiescence import LogFollower

_QUIET: Final = 2.0
_LIMIT: Final = 60.0
_FIRST = ("Namespace", "CustomResourceDefinition")


@contextmanager
def served(folder: Path, flags: Sequence[str], *, clock: Clock) -> Iterator[ServerProcess]:
    """Run a server with the log in `folder`, which it creates or continues, and additional `flags`."""
    place = folder.absolute()
    database = database_url(place)
    with ServerProcess(place, "--database", database, *flags, clock=clock, directory=Path.cwd()) as server:
        yield server


def prepare(folder: Path, setup: Sequence[Mapping[str, Any]], flags: Sequence[str], *, clock: Clock) -> None:
    """Create the log that all runs continue: a new control plane with the objects of the setup.

    Namespaces and definitions are applied first. Raises `StepFailed` or `ApiError` if the server refuses an object.
    """
    folder.mkdir(parents=True)
    with served(folder, flags, clock=clock) as server, opened_log(folder, clock=clock) as log:
        administrator = Administrator(server.kubeconfig, lambda: None, clock=clock)
        for obj in sorted(setup, key=lambda obj: obj["kind"] not in _FIRST):
            administrator.apply(obj)
        LogFollower(log, clock=clock).until_quiet(_QUIET, _LIMIT)


def copied(prepared: Path, folder: Path) -> None:
    """Copy the prepared log and its server's identity to the folder of a run."""
    shutil.copytree(prepared, folder, ignore=shutil.ignore_patterns("output.log"))
