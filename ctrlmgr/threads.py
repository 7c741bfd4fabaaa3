"""The one place where a thread starts: named, daemonic, and never dying in silence."""

from __future__ import annotations

import threading
from collections.abc import Callable

import structlog

log = structlog.get_logger(__name__)


def start(name: str, target: Callable[[], None]) -> threading.Thread:
    """Run `target` in a new thread called `name`; an exception that escapes it is logged with its traceback."""

    def run() -> None:
        try:
            target()
        except BaseException:
            log.exception("thread died", thread=name)

    thread = threading.Thread(target=run, name=name, daemon=True)
    thread.start()
    return thread
