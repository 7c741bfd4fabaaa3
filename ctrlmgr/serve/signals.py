"""Runs a function until the process receives a signal to stop.

Guarantees: the first SIGTERM or SIGINT stops the function gracefully. A second signal ends the process at once. No data
is lost, because the log is durable at any time. SIGHUP reloads the settings.
"""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import structlog

from ctrlmgr import threads

log = structlog.get_logger(__name__)

_FINISHED = 0
"""The byte that the thread writes to the wake-up socket when it ends; all other bytes are signal numbers."""


def run_until_signalled(
    run: Callable[[threading.Event], None],
    *,
    stopping: Callable[[], None] = lambda: None,
    hang_up: Callable[[], None] | None = None,
) -> None:
    """Call `run` on a thread, and set its event when the process receives a signal.

    Raises the errors that `run` raises. The function calls `stopping` at the signal to stop, and `hang_up` at every
    earlier SIGHUP, both on the caller's thread. If `hang_up` is not given, SIGHUP stops the process too, unless SIGHUP
    is ignored (nohup).

    A Python signal handler may interrupt the main thread anywhere, even while the thread holds a lock that `Event.set`
    needs. Therefore the signal handlers do nothing; the interpreter writes the signal's number to a socket, and the
    main thread reads the socket.
    """
    stop, failures = threading.Event(), list[BaseException]()
    reading, writing = socket.socketpair()
    writing.setblocking(False)

    def target() -> None:
        try:
            run(stop)
        except BaseException as error:  # The error is raised again on the main thread.
            failures.append(error)
        finally:
            writing.send(bytes([_FINISHED]))

    with reading, writing, _signals_written_to(writing):
        threads.start("manager", target)
        while (number := reading.recv(1)[0]) != _FINISHED:
            if number == signal.SIGHUP and hang_up is not None:
                if not stop.is_set():
                    hang_up()
                continue
            if stop.is_set():
                # The second signal ends the process at once; because the log is durable, no acknowledged write is lost.
                os._exit(128 + number)
            log.info("stopping", signal=signal.Signals(number).name)
            stop.set()
            stopping()
    if failures:
        raise failures[0]


@contextmanager
def _signals_written_to(writing: socket.socket) -> Iterator[None]:
    numbers = [signal.SIGTERM, signal.SIGINT]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        numbers.append(signal.SIGHUP)
    before = {number: signal.signal(number, lambda number, frame: None) for number in numbers}
    wakeup = signal.set_wakeup_fd(writing.fileno())
    try:
        yield
    finally:
        signal.set_wakeup_fd(wakeup)
        for number, handler in before.items():
            signal.signal(number, handler)
