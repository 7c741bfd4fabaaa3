"""The only module of ctrlmgr that starts threads.

The threads have names and are daemonic, and their exceptions are logged.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

import structlog

T = TypeVar("T")
R = TypeVar("R")

log = structlog.get_logger(__name__)


def start(name: str, target: Callable[[], None]) -> threading.Thread:
    """Run `target` in a new thread called `name`; an exception that it raises is logged with its traceback."""

    def run() -> None:
        try:
            target()
        except BaseException:
            log.exception("thread died", thread=name)

    thread = threading.Thread(target=run, name=name, daemon=True)
    thread.start()
    return thread


def each(name: str, act: Callable[[T], R], items: Sequence[T], at_once: int) -> list[R]:
    """Call `act` with each item on up to `at_once` threads, and return the results in the order of the items.

    Each call of `act` has the context variables of the caller of `each`: the fields of log lines, and the current span.
    All calls of `act` have ended when `each` returns, or when `each` raises the first exception of `act`.
    """
    contexts = [copy_context() for _ in items]
    with ThreadPoolExecutor(min(at_once, len(items)), thread_name_prefix=name) as pool:
        return [*pool.map(lambda context, item: context.run(act, item), contexts, items)]
