"""How the interpreter is set up: measured choices about threads and the cycle collector, all in one place.

For a process that serves, once, at the start (`tune`):
- Threads hand the interpreter over every half millisecond: beside one busy thread this brings the event loop's
  lateness, at the 99th percentile, from 18 ms to 2 ms.
- The cycle collector looks at young objects every 5,000 allocations rather than every 700. Hardly anything here is
  part of a cycle, and the default costs 3 µs of the 40 that an append takes. All threads wait while it looks: at 20,000
  and 20 young generations to a middle one it stopped them for up to 115 ms, now for some 10.
- What has survived a full collection is out of its sight (`gc.freeze`), so that the next one looks at what has come
  since; every 16th looks at everything, or what is dropped late would never go.
- What is larger than 128 KiB is mapped by itself, always. Each TLS connection has a buffer of 256 KiB of which it
  touches a page or two; glibc would soon have put these on the heap, where an idle watcher comes to 61 KB, not 38.
- Up to 4 MiB of free memory are kept at hand: giving them back and fetching them again takes a quarter of a LIST.
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
"""M_MMAP_THRESHOLD and M_TRIM_THRESHOLD, by mallopt's names for them (malloc.h); saying what they are keeps glibc from
moving them."""

_SWITCH_INTERVAL = 0.0005
_THRESHOLDS = (5_000, 4, 40)
_MANY = 4 * _THRESHOLDS[0]
"""Young objects that would take a collection long."""
_OLDEST = 2
"""The generation of a full collection."""
_EVERYTHING = 16
"""Of so many full collections one looks at everything."""


def tune() -> None:
    """Apply all of it, for the whole process."""
    sys.setswitchinterval(_SWITCH_INTERVAL)
    gc.set_threshold(*_THRESHOLDS)
    if not any(isinstance(getattr(each, "__self__", None), _Full) for each in gc.callbacks):
        gc.callbacks.append(_full.hear)
    collector.freezes = True
    with suppress(OSError, AttributeError):  # another C library: its own habits will do
        for parameter, value in _MALLOC.items():
            ctypes.CDLL(None).mallopt(parameter, value)


class Collector:
    """The cycle collector of this process, which several threads may want to be off at a time."""

    def __init__(self) -> None:
        """Leave it as it is."""
        self._lock = threading.Lock()
        self._pauses = 0
        self.was_on = True
        """Whether it was on before it was paused."""
        self.freezes = False
        """Whether what has been frozen is looked at again now and then, so that more may be."""

    def pause(self) -> None:
        """Switch it off, until `resume` was called as often as this was."""
        with self._lock:
            if self._pauses == 0:
                self.was_on = gc.isenabled()
                gc.disable()
            self._pauses += 1

    def resume(self) -> None:
        """Switch it on again, if it was on and no other caller wants it off.

        Where the work has left many objects (compiled schemas, say) they are here to stay: the next collection, which
        all threads wait for, would walk every one.
        """
        with self._lock:
            self._pauses -= 1
            if self._pauses == 0 and self.was_on:
                if self.freezes and gc.get_count()[0] > _MANY:
                    gc.freeze()
                gc.enable()


collector = Collector()


class _Full:
    """Keeps full collections short; hears of every collection from the interpreter."""

    def __init__(self) -> None:
        self._count = 0

    def hear(self, phase: str, info: Mapping[str, int]) -> None:
        """Note that a collection starts or stops."""
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
    """Keep the cycle collector off while very many objects are made that stay.

    It counts allocations: loading 50,000 objects sets it off over and over, to walk everything loaded so far and
    find nothing, since objects hold bytes and no cycles (1.6 s against 0.48 s with it off). Reference counting goes
    on. With `freeze`, what there is at the end is out of the collector's sight for good, or the next full collection
    would walk all of it: a stall of 0.3 to 0.6 s.
    """
    collector.pause()
    try:
        yield
    finally:
        if freeze and collector.was_on:
            gc.freeze()
        collector.resume()


def frames() -> dict[int, FrameType]:
    """Return what each thread runs at the moment: its innermost frame, by the thread's identifier.

    The collector is off meanwhile. CPython 3.11 holds the lock of its list of threads while it makes this dict; a
    collection that began there would run Python code, so another thread could run, start a thread, and wait for that
    lock with the interpreter's lock in hand: both wait for ever (https://github.com/python/cpython/issues/106883).
    """
    with collector_paused():
        return sys._current_frames()
