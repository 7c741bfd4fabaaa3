"""Provides resources of the machine for faults: networks that can be cut, small disks that can be filled, clocks that
can be changed.

Guarantees: the machine's own network is not changed, because all created addresses are in new network namespaces. All
resources that the module creates are removed at the end. If the machine does not support or permit a fault, the module
raises `FaultUnsupported` with the reason.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from ctrlmgr.errors import CtrlmgrError

_CLONE_NEWNET = 0x40000000
_NEAR, _FAR = "10.99.{}.1", "10.99.{}.2"
_CHUNK = 1 << 16
_LIBRARIES = (Path(__file__).parents[3] / ".venv" / "faketime", Path("/usr/lib"), Path("/usr/lib64"))
"""Possible paths of libfaketime; if the library is missing, scripts/test installs it at the first path."""
_numbers = itertools.count(1)


class FaultUnsupported(CtrlmgrError):
    """Raised if this machine does not support a fault."""


class Network:
    """Two network namespaces with two virtual cables: one cable leads to the database, the other carries all other
    connections.

    The namespace `near` contains the database and the clients, and the namespace `far` contains one server. The class
    is a context manager; it raises `FaultUnsupported` if `ip` is not installed or the process lacks the
    necessary rights.
    """

    database = _NEAR.format(1)
    """The address of the database, which both namespaces use."""
    server = _FAR.format(2)
    """The address of the server on the far side."""

    def __init__(self) -> None:
        """Make it."""
        name = f"ctrlmgr-{os.getpid()}-{next(_numbers)}"
        self.near, self.far = f"{name}-near", f"{name}-far"

    def __enter__(self) -> Network:
        try:
            for namespace in (self.near, self.far):
                _run("ip", "netns", "add", namespace)
                _run("ip", "-n", namespace, "link", "set", "lo", "up")
            for cable in (1, 2):
                self._lay(cable)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def _lay(self, cable: int) -> None:
        link = f"cable{cable}"
        _run("ip", "-n", self.near, "link", "add", link, "type", "veth", "peer", "name", link, "netns", self.far)
        for namespace, address in ((self.near, _NEAR), (self.far, _FAR)):
            _run("ip", "-n", namespace, "address", "add", f"{address.format(cable)}/30", "dev", link)
            _run("ip", "-n", namespace, "link", "set", link, "up")

    def cut(self, *, at_our_end: bool) -> None:
        """Disconnect the database's cable: at the server's end, which the server notices, or at the database's end."""
        self._set("down", self.far if at_our_end else self.near)

    def mend(self) -> None:
        """Connect the database's cable again."""
        for namespace in (self.near, self.far):
            self._set("up", namespace)

    def _set(self, state: str, namespace: str) -> None:
        _run("ip", "-n", namespace, "link", "set", "cable1", state)

    def close(self) -> None:
        """Remove the namespaces."""
        for namespace in (self.near, self.far):
            with suppress(FaultUnsupported):
                _run("ip", "netns", "delete", namespace)


@contextmanager
def inside(namespace: str) -> Iterator[None]:
    """Move this thread, and all processes that the thread starts in the block, into a network namespace."""
    libc = ctypes.CDLL(None, use_errno=True)
    own = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    other = os.open(f"/run/netns/{namespace}", os.O_RDONLY | os.O_CLOEXEC)
    try:
        if libc.setns(other, _CLONE_NEWNET):
            raise FaultUnsupported(f"setns: {os.strerror(ctypes.get_errno())}")
        yield
    finally:
        libc.setns(own, _CLONE_NEWNET)
        os.close(own)
        os.close(other)


class SmallDisk:
    """A separate filesystem in memory that a test can fill; it is a context manager."""

    def __init__(self, folder: Path, mebibytes: int) -> None:
        """Mount the filesystem at `folder`."""
        self.folder = folder
        self._size = mebibytes
        self._filler = folder / "filler"

    def __enter__(self) -> SmallDisk:
        self.folder.mkdir()
        _run("mount", "-t", "tmpfs", "-o", f"size={self._size}m,mode=0755", "tmpfs", str(self.folder))
        return self

    def __exit__(self, *exc_info: object) -> None:
        with suppress(FaultUnsupported):
            _run("umount", "--lazy", str(self.folder))

    def fill(self) -> None:
        """Fill the filesystem."""
        with self._filler.open("ab", buffering=0) as file, suppress(OSError):
            while True:
                file.write(bytes(_CHUNK))

    def empty(self) -> None:
        """Free the space that was filled."""
        self._filler.unlink(missing_ok=True)


class WallClock:
    """The wall clock of one process; a test can change it while the process runs (libfaketime).

    Only the time of day is changed. Monotonic clocks are not changed, because they never jump on a real machine.
    """

    def __init__(self, file: Path) -> None:
        """Store the offset of the clock in `file`; raises `FaultUnsupported` if libfaketime is not installed."""
        self._file = file
        self._library = _find_library()
        self.turn(0)

    def turn(self, seconds: int) -> None:
        """From now on, set the clock this number of seconds ahead of the machine's clock."""
        written = self._file.with_suffix(".new")
        written.write_text(f"{seconds:+d}\n")
        written.replace(self._file)

    @property
    def variables(self) -> Mapping[str, str]:
        """The environment variables with which a process uses this clock."""
        return {
            "LD_PRELOAD": str(self._library),
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            # otherwise libfaketime also changes the clock for waits, and threads starve each other
            "FAKETIME_FORCE_MONOTONIC_FIX": "0",
        }


def _find_library() -> Path:
    for place in _LIBRARIES:
        for found in sorted(place.glob("**/faketime/libfaketimeMT.so.1")):
            return found
    raise FaultUnsupported("there is no libfaketime (Debian's package libfaketime)")


def _run(program: str, *arguments: str) -> None:
    if shutil.which(program) is None:
        raise FaultUnsupported(f"there is no program {program}")
    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise FaultUnsupported(f"{program} {' '.join(arguments)}: {done.stderr.strip()}")
