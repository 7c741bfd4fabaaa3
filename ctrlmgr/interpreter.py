"""Settings of the Python interpreter for a process that serves: threads, the cycle collector and the allocator.

`tune` applies them once, at the start:
- A thread releases the interpreter's lock after half a millisecond, so a busy thread delays the event loop by no more
  than that.
- The cycle collector runs only every 5,000 allocations, because all threads wait for it, and few objects here are part
  of a cycle.
- Objects that survive a full collection are frozen (`gc.freeze`), so that the next collections skip them. Every 16th
  full collection examines all objects, so that garbage among the frozen ones is freed.
- The allocator always maps each block of more than 128 KiB separately, so that the unused part of a TLS connection's
  buffer costs no memory. The allocator keeps up to 4 MiB of free memory, which the next large response uses again.

Measurements and alternatives: docs/decisions/interpreter.md; `python -m bench.decisions.interpreter`.
"""

from __future__ import annotations

import ctypes
import gc
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from types import FrameType

_MALLOC = {-3: 128 * 1024, -1: 4 * 1024 * 1024}
"""The options M_MMAP_THRESHOLD and M_TRIM_THRESHOLD, with values in bytes, by their numbers for mallopt (malloc.h).

glibc adapts these only while they have their defaults, so a value that is set stays.
"""

_SWITCH_INTERVAL = 0.0005
_THRESHOLDS = (5_000, 4, 40)
_MANY = 4 * _THRESHOLDS[0]
"""The number of young objects from which on a collection takes long."""
_OLDEST = 2
"""The generation of a full collection."""
_EVERYTHING = 16
"""After this number of full collections, one collection examines the frozen objects too."""


def tune() -> None:
    """Apply the settings to the whole process."""
    sys.setswitchinterval(_SWITCH_INTERVAL)
    gc.set_threshold(*_THRESHOLDS)
    if not any(isinstance(getattr(each, "__self__", None), _Full) for each in gc.callbacks):
        gc.callbacks.append(_full.hear)
    collector.freezes = True
    with suppress(OSError, AttributeError):  # Another C library than glibc has no mallopt; its defaults are kept.
        for parameter, value in _MALLOC.items():
            ctypes.CDLL(None).mallopt(parameter, value)


class Collector:
    """The cycle collector of this process. Several threads may pause it at the same time."""

    def __init__(self) -> None:
        """Change nothing yet."""
        self._lock = threading.Lock()
        self._pauses = 0
        self.was_on = True
        """Whether the collector was on before it was paused."""
        self.freezes = False
        """Whether `resume` may freeze objects. Freezing is only allowed if a full collection examines the frozen
        objects now and then.
        """

    def pause(self) -> None:
        """Switch the collector off until `resume` has been called as often as this method."""
        with self._lock:
            if self._pauses == 0:
                self.was_on = gc.isenabled()
                gc.disable()
            self._pauses += 1

    def resume(self) -> None:
        """Switch the collector on again, if it was on before and no other caller has paused it.

        If the work has created many young objects that stay, such as compiled schemas, they are frozen. Without
        freezing, the next collection would examine each of these objects while all threads wait.
        """
        with self._lock:
            self._pauses -= 1
            if self._pauses == 0 and self.was_on:
                if self.freezes and gc.get_count()[0] > _MANY:
                    gc.freeze()
                gc.enable()


collector = Collector()


class _Full:
    """Keeps full collections short; the interpreter calls it for each collection."""

    def __init__(self) -> None:
        self._count = 0

    def hear(self, phase: str, info: Mapping[str, int]) -> None:
        """Freeze after a full collection, and unfreeze before every 16th."""
        if info["generation"] != _OLDEST:
            return
        if phase == "stop":
            gc.freeze()
            return
        self._count += 1
        if self._count % _EVERYTHING == 0:
            gc.unfreeze()


_full = _Full()


@contextmanager
def collector_paused(*, freeze: bool = False) -> Iterator[None]:
    """Keep the cycle collector off while the block creates many objects that stay.

    The collector counts allocations. While 50,000 objects are loaded, it would run again and again and examine all of
    them. Reference counting is not affected. With `freeze`, the objects that exist at the end are frozen, because
    otherwise the next full collection would examine all of them while all threads wait.
    """
    collector.pause()
    try:
        yield
    finally:
        if freeze and collector.was_on:
            gc.freeze()
        collector.resume()


def frames() -> dict[int, FrameType]:
    """Return the innermost frame of each thread, by the thread's identifier.

    The collector is off meanwhile. CPython 3.11 holds the lock of its list of threads while it creates this dict. A
    collection at that moment runs Python code, so another thread can run, start a thread, and wait for that lock while
    it holds the interpreter's lock: a deadlock (https://github.com/python/cpython/issues/106883).
    """
    with collector_paused():
        return sys._current_frames()
