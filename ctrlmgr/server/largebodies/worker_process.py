"""Controls one worker process: exchanges messages on the process's socket, and kills the process.

Guarantees: no method blocks the event loop. The worker process is a new interpreter, and not a fork of the server
process with its threads. The server awaits the exit of the worker process, so that no zombie remains. When the server's
process ends for any reason, the operating system closes the worker's socket.
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
"""Size of the buffer for reads from the worker process, in bytes."""


class WorkerExited(Exception):
    """Raised if the worker process has ended or was killed."""


class Process:
    """One worker process. Used on the event loop's thread only."""

    def __init__(
        self,
        program: subprocess.Popen[bytes],
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        kind_of: KindOf,
        workers: Workers,
    ) -> None:
        """Create an object for a running program; one of the threads `workers` awaits the program's exit."""
        self._program = program
        self._reader = reader
        self._writer = writer
        self._kind_of = kind_of
        self._workers = workers
        self._ending: asyncio.Task[int] | None = None

    @property
    def pid(self) -> int:
        """The id of the worker process."""
        return self._program.pid

    async def send(self, value: Any) -> None:
        """Send a message to the worker process; raises `WorkerExited` if the process has ended."""
        try:
            self._writer.write(framed(value))
            await self._writer.drain()
        except OSError as error:
            raise WorkerExited from error

    async def receive(self) -> Any:
        """Return the next message of the worker process; raises `WorkerExited` if the process has ended."""
        try:
            (length,) = HEADER.unpack(await self._reader.readexactly(HEADER.size))
            return loaded(await self._reader.readexactly(length), self._kind_of)
        except (OSError, asyncio.IncompleteReadError) as error:
            raise WorkerExited from error

    def kill(self) -> None:
        """Kill the worker process; further calls have no effect."""
        if self._ending is None:
            self._program.kill()
            self._writer.close()
            self._ending = asyncio.ensure_future(self._workers.run(self._program.wait))

    async def ended(self) -> int:
        """Kill the worker process and wait for its exit; return its exit code in the form of `Popen.returncode`."""
        self.kill()
        assert self._ending is not None  # this field is set by `kill`
        return await asyncio.shield(self._ending)


async def start(blueprint: Blueprint, kind_of: KindOf, workers: Workers) -> Process:
    """Start a worker process and wait until it is ready.

    Raises `WorkerExited` if the process ends before it is ready.
    """
    ours, theirs = socket.socketpair()
    try:
        with theirs:
            program = await workers.run(lambda: _started(theirs))
    except OSError as error:
        ours.close()
        raise WorkerExited from error
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
    """Start the program. Its standard input is `end`, and its module path is that of this process."""
    path = os.pathsep.join(each or os.getcwd() for each in sys.path)
    environment = {**os.environ, "PYTHONPATH": path}
    with suppress(KeyError):
        del environment["PYTHONSTARTUP"]
    return subprocess.Popen(
        [sys.executable, "-m", _MODULE], stdin=end.fileno(), stdout=subprocess.DEVNULL, env=environment
    )
