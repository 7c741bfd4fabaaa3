"""Signals: a process that runs until it is told to stop.

Guarantees: the first SIGTERM or SIGINT stops what runs in order; a second one ends the process at once, which the log
survives. SIGHUP has it read again what may change while it runs.
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
"""What the thread writes to the wake-up socket when it ends; other bytes are signal numbers."""


def run_until_signalled(
    run: Callable[[threading.Event], None],
    *,
    stopping: Callable[[], None] = lambda: None,
    hang_up: Callable[[], None] | None = None,
) -> None:
    """Call `run` on a thread of its own, and set its event when a signal comes; raises what it raises.

    `stopping` is called when it is told to stop, `hang_up` for every SIGHUP until then, both on this thread; without
    `hang_up` SIGHUP stops it, too, unless it is ignored (nohup).

    A signal's Python handler interrupts this thread anywhere, even inside a lock that setting an event needs. So
    handlers do nothing here: the interpreter writes the signal's number to a socket that this thread reads.
    """
    stop, failures = threading.Event(), list[BaseException]()
    reading, writing = socket.socketpair()
    writing.setblocking(False)

    def target() -> None:
        try:
            run(stop)
        except BaseException as error:  # raised again on the main thread
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
                os._exit(128 + number)  # asked twice: the log is durable, so nothing acknowledged is lost
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
