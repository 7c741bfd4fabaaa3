"""Where objects are made while there is a large body: apart from those that stay, so that its memory can be given back.

CPython makes small objects in arenas of 1 MiB, each given back when nothing at all is left in it. A body of 1.5 MB
becomes 90 MB of objects; what other requests leave for good meanwhile (an event, a field of a schema) lies between
them, and most of these arenas stayed: half of what the process had had before. The C library gives back each page.

Guarantees: meanwhile small objects come from the C library's malloc, which takes a fifth longer; at the end they come
from the arenas again, and `give_back` has the C library return what is free. Where objects come from something else
than CPython's arenas to begin with (PYTHONMALLOC, a debugger's hooks) all of this does nothing.

Why this may be: CPython's own allocator asks of each address that it is to free or to resize whether it lies in one of
its arenas, and hands it to the C library where it does not, because objects over 512 bytes come from there
(`Objects/obmalloc.c`, `_PyObject_Free`, `_PyObject_Realloc`). Only making is switched; freeing and resizing never is.
All of it happens with the interpreter's lock held.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress

_RAW, _SMALL = 0, (1, 2)
"""`PyMemAllocatorDomain`: the C library's, and those whose small objects come from arenas, buffers and objects."""
_PLAIN = ("", "default", "pymalloc")
"""What PYTHONMALLOC says when objects come from arenas."""


class _Allocator(ctypes.Structure):
    """`PyMemAllocatorEx`."""

    _fields_ = [  # what ctypes reads
        ("context", ctypes.c_void_p),
        ("malloc", ctypes.c_void_p),
        ("calloc", ctypes.c_void_p),
        ("realloc", ctypes.c_void_p),
        ("free", ctypes.c_void_p),
    ]


class Apart:
    """Has objects made apart, for as long as one of several wants it."""

    def __init__(self) -> None:
        """Leave it as it is."""
        self._lock = threading.Lock()
        self._wanted = 0
        self._ways = _ways() if _is_plain() else []

    def begin(self) -> None:
        """Have objects made apart, until `end` was called as often as this was."""
        with self._lock:
            self._wanted += 1
            if self._wanted == 1:
                for domain, usual, apart in self._ways:
                    _switch(domain, usual, apart)

    def end(self) -> None:
        """Have them made as usual again, if no other caller wants them apart."""
        with self._lock:
            self._wanted -= 1
            if self._wanted == 0:
                for domain, usual, apart in self._ways:
                    _switch(domain, apart, usual)


def _switch(domain: int, before: _Allocator, after: _Allocator) -> None:
    """Have a domain's objects made another way; where a tracer has put itself in between, it stays there."""
    if _allocator(domain).malloc == before.malloc:
        ctypes.pythonapi.PyMem_SetAllocator(domain, ctypes.byref(after))


def _is_plain() -> bool:
    """Say whether this is a CPython whose objects come from its arenas, without checks of its own around them.

    One for debugging (`d`) has checks, one without the interpreter's lock (`t`) has other arenas.
    """
    if sys.implementation.name != "cpython" or sys.flags.dev_mode or not {"d", "t"}.isdisjoint(sys.abiflags):
        return False
    return os.environ.get("PYTHONMALLOC", "") in _PLAIN


def _ways() -> list[tuple[int, _Allocator, _Allocator]]:
    """Return for each domain how objects are made usually and apart."""
    raw = _allocator(_RAW)
    found = []
    for domain in _SMALL:
        usual = _allocator(domain)
        if usual.context == raw.context:  # what is made is freed with one context
            found.append((domain, usual, _Allocator(usual.context, raw.malloc, raw.calloc, usual.realloc, usual.free)))
    return found


def _allocator(domain: int) -> _Allocator:
    result = _Allocator()
    ctypes.pythonapi.PyMem_GetAllocator(domain, ctypes.byref(result))
    return result


def give_back() -> None:
    """Have the C library return what is free to the system; other threads go on meanwhile."""
    if _trim is not None:
        _trim(0)


def _found_trim() -> Callable[[int], object] | None:
    """Return the C library's function; None for another library, whose own habits will do.

    It is looked for once: each `CDLL` is a class of its own, which only the cycle collector takes away again.
    """
    with suppress(OSError, AttributeError):
        found: Callable[[int], object] = ctypes.CDLL(None).malloc_trim
        return found
    return None


_trim = _found_trim()


apart = Apart()
"""Of this process."""
