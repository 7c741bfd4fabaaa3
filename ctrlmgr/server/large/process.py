"""One worker process, as the event loop sees it: a socket to talk over, and a process that can be killed.

Guarantees: nothing here blocks the loop; the process is started without forking this one's threads (a new interpreter)
and its end is waited for, so none is left behind. If this process ends in whatever way, the worker's socket ends.
"""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from contextlib import suppress
from typing import Any, Final

from ctrlmgr.largebodies.blueprint import Blueprint
from ctrlmgr.largebodies.messages import HEADER, KindOf, framed, loaded
from ctrlmgr.server.workers import Workers

_MODULE: Final = "ctrlmgr.largebodies.worker"
_READ: Final = 1 << 20
"""Bytes that are read ahead of what is asked for."""


class Ended(Exception):
    """The process has ended, or was ended."""


class Process:
    """See the module's docstring; used on the event loop only."""

    def __init__(
        self,
        program: subprocess.Popen[bytes],
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        kind_of: KindOf,
        workers: Workers,
    ) -> None:
        """Talk to a program that runs; its end is waited for on `workers`."""
        self._program = program
        self._reader = reader
        self._writer = writer
        self._kind_of = kind_of
        self._workers = workers
        self._ending: asyncio.Task[int] | None = None

    @property
    def pid(self) -> int:
        """The number that the system knows it by."""
        return self._program.pid

    async def send(self, value: Any) -> None:
        """Send a message; raises `Ended`."""
        try:
            self._writer.write(framed(value))
            await self._writer.drain()
        except OSError as error:
            raise Ended from error

    async def receive(self) -> Any:
        """Return the next message; raises `Ended`."""
        try:
            (length,) = HEADER.unpack(await self._reader.readexactly(HEADER.size))
            return loaded(await self._reader.readexactly(length), self._kind_of)
        except (OSError, asyncio.IncompleteReadError) as error:
            raise Ended from error

    def kill(self) -> None:
        """End it at once, whatever it does; used more than once it does nothing more."""
        if self._ending is None:
            self._program.kill()
            self._writer.close()
            self._ending = asyncio.ensure_future(self._workers.run(self._program.wait))

    async def ended(self) -> int:
        """Wait for its end, and return how it ended: as `Popen.returncode`."""
        self.kill()
        assert self._ending is not None  # it has been told to end
        return await asyncio.shield(self._ending)


async def start(blueprint: Blueprint, kind_of: KindOf, workers: Workers) -> Process:
    """Start a process and wait until it can do jobs; raises `Ended` if it cannot be started."""
    ours, theirs = socket.socketpair()
    try:
        with theirs:
            program = await workers.run(lambda: _started(theirs))
    except OSError as error:
        ours.close()
        raise Ended from error
    reader, writer = await asyncio.open_connection(sock=ours, limit=_READ)
    process = Process(program, reader, writer, kind_of, workers)
    try:
        await process.send(blueprint)
        await process.receive()
    except BaseException:
        process.kill()
        raise
    return process


def _started(end: socket.socket) -> subprocess.Popen[bytes]:
    """Start the program with `end` as its standard input; modules are found where this process finds them."""
    path = os.pathsep.join(each or os.getcwd() for each in sys.path)
    environment = {**os.environ, "PYTHONPATH": path}
    with suppress(KeyError):
        del environment["PYTHONSTARTUP"]
    return subprocess.Popen(
        [sys.executable, "-m", _MODULE], stdin=end.fileno(), stdout=subprocess.DEVNULL, env=environment
    )
