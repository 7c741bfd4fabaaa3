"""Configures the Python interpreter of a server process: thread switching, the cycle collector and the allocator.

The function `tune` applies the following settings once, at the start of the process:
- A thread releases the interpreter's lock after half a millisecond, so that a busy thread delays the event loop by at
  most that time.
- The cycle collector runs only after every 5,000 allocations, because all threads wait for the collector, and few
  objects of this program are part of a cycle.
- Objects that survive a full collection are frozen (`gc.freeze`), so that later collections skip these objects. Every
  16th full collection examines all objects, so that garbage among the frozen objects is freed.
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
"""The numbers of mallopt's options M_MMAP_THRESHOLD and M_TRIM_THRESHOLD (malloc.h), with their values in bytes.

glibc changes these options automatically only until the program sets them.
"""

_SWITCH_INTERVAL = 0.0005
_THRESHOLDS = (5_000, 4, 40)
_MANY = 4 * _THRESHOLDS[0]
"""The number of young objects from which on a collection takes a long time."""
_OLDEST = 2
"""The generation number of a full collection."""
_EVERYTHING = 16
"""The number of full collections after which one collection also examines the frozen objects."""


def tune() -> None:
    """Apply the settings of this module to the whole process."""
    sys.setswitchinterval(_SWITCH_INTERVAL)
    gc.set_threshold(*_THRESHOLDS)
    if not any(isinstance(getattr(each, "__self__", None), _Full) for each in gc.callbacks):
        gc.callbacks.append(_full.hear)
    collector.freezes = True
    with suppress(OSError, AttributeError):  # Another C library than glibc has no mallopt; its defaults are kept.
        for parameter, value in _MALLOC.items():
            ctypes.CDLL(None).mallopt(parameter, value)


class Collector:
    """Controls the cycle collector of this process. Several threads may pause the collector at the same time."""

    def __init__(self) -> None:
        """Create an object that controls the collector; the collector stays unchanged."""
        self._lock = threading.Lock()
        self._pauses = 0
        self.was_on = True
        """Whether the collector was enabled before it was paused."""
        self.freezes = False
        """Whether `resume` may freeze objects (`gc.freeze`). `resume` may freeze objects only if some full collections
        also examine frozen objects.
        """

    def pause(self) -> None:
        """Disable the collector until `resume` has been called as often as this method."""
        with self._lock:
            if self._pauses == 0:
                self.was_on = gc.isenabled()
                gc.disable()
            self._pauses += 1

    def resume(self) -> None:
        """Enable the collector again, if the collector was enabled before and no other caller has paused it.

        If the caller has created many objects that will exist for long, such as compiled schemas, `resume` freezes
        these objects. Without freezing, the next collection would examine all new objects while all threads wait.
        """
        with self._lock:
            self._pauses -= 1
            if self._pauses == 0 and self.was_on:
                if self.freezes and gc.get_count()[0] > _MANY:
                    gc.freeze()
                gc.enable()


collector = Collector()


class _Full:
    """A callback of the collector that keeps full collections short; the interpreter calls it for each collection."""

    def __init__(self) -> None:
        self._count = 0

    def hear(self, phase: str, info: Mapping[str, int]) -> None:
        """Freeze objects after each full collection, and unfreeze all objects before every 16th one."""
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
    """Disable the cycle collector while the block creates many objects that will exist for long.

    An enabled collector would run often, because each collection begins after a certain number of allocations. For
    example, while a process loads 50,000 objects, the collector would examine all these objects several times.
    Reference counting continues while the collector is disabled. If `freeze` is set, the function freezes the objects
    that exist at the end of the block. The next full collection does not examine frozen objects.
    """
    collector.pause()
    try:
        yield
    finally:
        if freeze and collector.was_on:
            gc.freeze()
        collector.resume()


def frames() -> dict[int, FrameType]:
    """Return the innermost stack frame of each thread, by the thread's identifier.

    The cycle collector is disabled while the frames are read. CPython 3.11 holds the lock of its list of threads while
    it creates the dict of frames. If a collection runs Python code at that time, another thread can wait for the lock
    of the list of threads while this other thread holds the interpreter's lock. The result is a deadlock
    (https://github.com/python/cpython/issues/106883).
    """
    with collector_paused():
        return sys._current_frames()
