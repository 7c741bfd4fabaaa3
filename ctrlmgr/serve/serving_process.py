"""Runs the serving process: opens the log, runs the application, and handles signals and the service manager.

Guarantees:
- If another process serves the data directory, `serve` raises an error before it opens any file, unless the settings
  allow several processes.
- If the database cannot be opened, `serve` raises an error before any component starts. `serve` also raises all errors
  of `Application` before any component starts.
- SIGTERM and SIGINT stop the process gracefully. SIGHUP reloads the log level and the log format. Certificates and
  tokens are reloaded every second, even without a signal. If the process runs on a terminal, SIGHUP means that the
  terminal was closed, and stops the process.
- `serve` closes the log even if an error occurs.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from random import Random

import structlog

from ctrlmgr import interpreter, logging
from ctrlmgr.clock import Clock, SystemClock
from ctrlmgr.encryption import providers_from
from ctrlmgr.errors import SettingsError
from ctrlmgr.eventlog import EventLog, open_log
from ctrlmgr.eventlog.anchor_signing import Sealing
from ctrlmgr.private_files import narrow
from ctrlmgr.randomness import PooledRandom
from ctrlmgr.serve.application import CONTROLLERS_ONLY, Application
from ctrlmgr.serve.front import KUBECONFIG, Front, NewFront
from ctrlmgr.serve.log_keys.encryption_at_rest import require_keys
from ctrlmgr.serve.notify import ServiceManager
from ctrlmgr.serve.signals import run_until_signalled
from ctrlmgr.server.admin_kubeconfig import require_unclaimed
from ctrlmgr.settings import Settings
from ctrlmgr.tracing import spans
from ctrlmgr.tracing.tracing_setup import tracer_of

log = structlog.get_logger(__name__)


def serve(
    settings: Settings,
    *,
    started: Callable[[Application], None] = lambda application: None,
    read_settings: Callable[[], Settings] | None = None,
) -> None:
    """Run ctrlmgr in this process until the process receives a signal.

    The function calls `started` with the application before the application runs. `read_settings` reads the settings
    again after SIGHUP. The caller must be the main thread, because only the main thread receives signals. Raises
    `SettingsError` if settings are wrong, `LogError` if the log cannot be opened, and the errors of runnables.
    """
    interpreter.tune()
    clock, random = SystemClock(), PooledRandom()
    manager = ServiceManager(os.environ)
    if not settings.server.join and settings.server.role != CONTROLLERS_ONLY:
        require_unclaimed(settings.data_path / KUBECONFIG)
    with spans.installed(tracer_of(settings)), _opened(settings, clock, random) as event_log:
        application = Application(settings, event_log, clock=clock, random=random, new_front=_new_front(settings))
        # The permissions of files are changed only after the check of settings and database, because other files may
        # not belong to ctrlmgr.
        narrow(settings.data_path, _private_files(settings))
        if settings.identity_path:
            narrow(settings.identity_path, settings.identity_path.glob("*.token"))
        application.tell(manager)

        def run(stop: threading.Event) -> None:
            # The announcement is made only after the signal handlers are set, because a parent process may stop this
            # one when it reads the announcement.
            application.announce()
            started(application)
            head = event_log.head().revision
            log.info(
                "serving",
                url=application.server.url,
                database=settings.database_url,
                head=head,
                kubeconfig=str(application.kubeconfig),
            )
            application.run(stop)

        def reload() -> None:
            manager.reloading(lambda: _reload(read_settings or (lambda: settings)))

        run_until_signalled(run, stopping=manager.stopping, hang_up=None if _is_on_a_terminal() else reload)
        log.info("stopped", head=event_log.head().revision)


def _new_front(settings: Settings) -> NewFront:
    """Return the function that creates the front; import code for many clusters only if needed."""
    if not settings.clusters.directory or settings.server.role == CONTROLLERS_ONLY:
        return Front
    from ctrlmgr.serve.clusters.host_front import HostFront

    return partial(HostFront, make=Application)


def _is_on_a_terminal() -> bool:
    return sys.stdin is not None and sys.stdin.isatty()


def _reload(read_settings: Callable[[], Settings]) -> None:
    try:
        settings = read_settings()
    except SettingsError as error:
        log.error("reloading settings failed, keeping the previous ones", error=str(error))
        return
    logging.configure(level=settings.log.level, format=settings.log.format, modules=settings.log.module_levels)
    log.info("settings reloaded", log_level=settings.log.level, log_format=settings.log.format)


def _private_files(settings: Settings) -> Iterator[Path]:
    """Yield private files that may be outside the data directory: the database, its anchor, and the anchor's key."""
    scheme, _, path = settings.database_url.partition(":///")
    database = Path(path) if scheme == "sqlite" else None
    yield from filter(None, (database, settings.anchor_path, settings.anchor_key_path))


def _sealing(settings: Settings) -> Sealing | None:
    key, database = settings.anchor_key_path, settings.database
    if key is None:
        return None
    return Sealing(key, makes_key=True, command=database.anchor_command, every=database.anchor_command_every)


@contextmanager
def _opened(settings: Settings, clock: Clock, random: Random) -> Iterator[EventLog]:
    anchor = settings.anchor_path
    for directory in filter(None, (settings.data_path, anchor.parent if anchor else None)):
        try:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise SettingsError(f"data_dir: {directory} cannot be created: {error.strerror}") from error
    event_log = open_log(
        settings.database_url,
        clock=clock,
        random=random,
        migrate=True,
        anchor=anchor,
        sealing=_sealing(settings),
        pool_size=settings.database.pool_size,
        providers=providers_from(settings.database.encryption_provider_config, clock),
    )
    try:
        require_keys(event_log)
        yield event_log
    finally:
        event_log.close()
