"""Work that may take long for what it is given, on a thread of its own, each piece with a deadline that ends it.

Guarantees:
- The event loop goes on meanwhile, and others are answered.
- Work that has not ended `DEADLINE` seconds after it began is ended, not only no longer waited for: who asked is told
  504, and the thread goes on with the next piece. (It ends where the interpreter has a say, between two bytecodes: a
  single call into C runs to its end first. None of ours takes more than time in proportion to its input, and objects
  are converted in slices, `schema.slices`.)
- Pieces are begun in the order in which they came.
- The cycle collector is off while there is work, and shortly after: it would walk all that a large body is made of,
  over and over, in a single step of a quarter of a second, and find nothing. Where work does not cease it looks at what
  is new every `_LOOK_EVERY` seconds.
- Objects are made apart while there is work (`ctrlmgr.allocation`), and what is free is given back to the system
  afterwards, what the interpreter itself keeps for the next objects included (at the latest `_EMPTY_EVERY` seconds
  after the last of it).

How it ends: `PyThreadState_SetAsyncExc` has the interpreter raise `_Overdue` in the thread. It is a `BaseException`, so
no handler of errors takes it for one. What has been sent is always raised, never taken back: in CPython 3.11 and 3.12
the interpreter would go on to look for it at every step of every thread, and a traced program would not go on at all.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import threading
from collections.abc import Callable
from typing import Any, TypeVar

import structlog

from ctrlmgr.allocation import apart, give_back
from ctrlmgr.clock import Clock
from ctrlmgr.errors import RequestTimeout, StatusDetails
from ctrlmgr.interpreter import collector, empty_free_lists
from ctrlmgr.schema import slices
from ctrlmgr.server.workers import Workers

T = TypeVar("T")

log = structlog.get_logger(__name__)

DEADLINE = 10.0
"""Seconds that a piece of work may take: three times what the largest body takes that a client may send, on a slow
machine beside others."""

_THREADS = 1
"""Two are no quicker, for the interpreter is one thread's at a time, and make others wait for two: beside four clients
that send bodies of 1.4 MB a GET waits for 0.2 seconds at the most, not for 0.3."""

_AGAIN = 1.0
"""Seconds until a thread that goes on is told again."""


_LINGER = 0.05
"""Seconds for which what was worked on may still be there afterwards."""

_LOOK_EVERY = 10.0
_EMPTY_EVERY = 2.0
"""Seconds between two times that free lists are emptied, for which all threads wait."""


class _Overdue(BaseException):
    """Raised in a thread to end what it works on."""


class BoundedWork:
    """See the module's docstring; started and stopped by the server that it works for."""

    def __init__(self, clock: Clock, *, deadline: float = DEADLINE) -> None:
        """Give each piece of work `deadline` seconds by `clock`."""
        self._workers = Workers(_THREADS)
        self._clock = clock
        self._deadline = deadline
        self._pause = _Pause(clock, lambda: self._workers.begin(give_back))

    def start(self) -> None:
        """Start the threads."""
        self._workers.start()

    def stop(self) -> None:
        """Have the threads end once what was given before is done."""
        self._workers.stop()
        self._pause.stop()

    async def run(self, call: Callable[[], T]) -> T:
        """Have a thread call `call`; returns what it returns, raises what it raises, or `RequestTimeout`."""
        piece = _Piece(call, self._clock)
        self._pause.begin()
        watching = asyncio.ensure_future(self._watch(piece))
        try:
            result: T = await self._workers.run(piece)
            return result
        finally:
            watching.cancel()
            self._pause.end_soon()

    async def _watch(self, piece: _Piece) -> None:
        left = self._deadline
        while True:
            await asyncio.sleep(left)
            left = piece.left(self._deadline)
            if left <= 0:
                piece.end()
                left = _AGAIN


class _Pause:
    """Keeps the cycle collector off while there is work, and objects apart; used on the event loop only."""

    def __init__(self, clock: Clock, give_back: Callable[[], None]) -> None:
        self._clock = clock
        self._give_back = give_back
        self._working = 0
        self._is_apart = False
        self._looked_at: float | None = None  # when the collector last looked or was paused; None while it is on
        self._ending: asyncio.TimerHandle | None = None
        self._emptied_at = clock.monotonic()
        self._emptying: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        self._working += 1
        if not self._is_apart:
            self._is_apart = True
            apart.begin()
        if self._ending is not None:
            self._ending.cancel()
            self._ending = None
        now = self._clock.monotonic()
        if self._looked_at is None:
            self._looked_at = now
            collector.pause()
        elif now - self._looked_at > _LOOK_EVERY:
            self._looked_at = now
            gc.collect(1)
            self._give_back()

    def end_soon(self) -> None:
        self._working -= 1
        if self._working == 0:
            loop = asyncio.get_running_loop()
            loop.call_soon(self._rest)  # once what comes of it on the loop, as large as it is, has been made, too
            self._ending = loop.call_later(_LINGER, self.end)

    def end(self) -> None:
        if self._cease() and self._emptying is None:
            wait = self._emptied_at + _EMPTY_EVERY - self._clock.monotonic()
            self._emptying = asyncio.get_running_loop().call_later(max(wait, 0.0), self._empty)

    def stop(self) -> None:
        """Be as if there had never been any work; on whichever thread, after the loop has ended as well."""
        self._cease()
        if self._emptying is not None:
            self._emptying.cancel()
            self._emptying = None

    def _cease(self) -> bool:
        """Have the collector on again, and give back what is free; return whether there had been any work."""
        if self._looked_at is None:
            return False
        self._looked_at = self._ending = None
        self._together()
        collector.resume()
        self._give_back()
        return True

    def _empty(self) -> None:
        """Empty free lists, unless there is work again, all of which that would walk: its end comes back to this."""
        self._emptying = None
        if self._looked_at is not None:
            return
        self._emptied_at = self._clock.monotonic()
        empty_free_lists()
        self._give_back()

    def _rest(self) -> None:
        """Have objects made as usual if there is no work: what stays of others would lie between what is free now."""
        if self._working == 0:
            self._together()

    def _together(self) -> None:
        if self._is_apart:
            self._is_apart = False
            apart.end()


class _Piece:
    """One call, which can be ended from another thread."""

    def __init__(self, call: Callable[[], Any], clock: Clock) -> None:
        self._call = call
        self._clock = clock
        self._lock = threading.Lock()
        self._began_at: float | None = None
        self._thread: int | None = None  # the one that is at it, and that may be told to end; guarded by _lock
        self._is_told = False  # whether it has been told, and may not have heard yet

    def __call__(self) -> Any:
        try:
            return self._work()
        except _Overdue:
            self._leave()
            log.warning("work took too long and was ended", work=getattr(self._call, "__qualname__", ""))
            words = "Timeout: request did not complete within the allotted timeout"
            raise RequestTimeout(words, details=StatusDetails()) from None

    def left(self, deadline: float) -> float:
        """Return how many of its seconds are left; all of them while it has not begun."""
        began_at = self._began_at
        return deadline if began_at is None else began_at + deadline - self._clock.monotonic()

    def end(self) -> None:
        """Have the thread give it up, if it is still at it."""
        with self._lock:
            if self._thread is not None:
                self._is_told = True
                _raise_in(self._thread, _Overdue)

    def _work(self) -> Any:
        with self._lock:
            self._thread = threading.get_ident()
        self._began_at = self._clock.monotonic()
        try:
            with slices.wanted():
                return self._call()
        finally:
            self._leave()

    def _leave(self) -> None:
        """See that the thread is told nothing from here on, and has heard what it was told, which may be just now."""
        while True:
            try:
                with self._lock:
                    self._thread = None
                if self._is_told:
                    self._is_told = False
                    _raise_in(threading.get_ident(), _Overdue)  # instead of what it was told, if that is still to come
                    while True:  # it comes at the next step
                        pass
                return
            except _Overdue:
                continue


def _raise_in(thread: int, error: type[BaseException]) -> None:
    """Have the interpreter raise `error` in a thread before long."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(error))
