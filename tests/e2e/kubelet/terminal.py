"""Commands in a terminal, as a kubelet runs them for `exec -t`."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import struct
import termios
from collections.abc import Sequence
from typing import Protocol


class Terminal(Protocol):
    """The channels of a command whose client has a terminal."""

    sizes: list[bytes]

    async def read(self) -> bytes: ...

    def stop_reading(self) -> None: ...

    def send(self, channel: int, data: bytes) -> None: ...


async def run_in_terminal(command: Sequence[str], channels: Terminal) -> int:
    """Run a command in a pseudo-terminal; return its exit code."""
    ours, theirs = os.openpty()
    process = await asyncio.create_subprocess_exec(*command, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    loop, ended = asyncio.get_running_loop(), asyncio.Event()

    def show() -> None:
        try:
            channels.send(1, os.read(ours, 4096))
        except OSError:  # the command has closed the terminal
            loop.remove_reader(ours)
            ended.set()

    loop.add_reader(ours, show)
    feeding = asyncio.ensure_future(_feed(ours, channels))
    code = await process.wait()
    await ended.wait()
    channels.stop_reading()
    await feeding
    os.close(ours)
    return code


async def _feed(terminal: int, channels: Terminal) -> None:
    while data := await channels.read():
        if channels.sizes:  # a size that was sent before the input counts for it
            size = json.loads(channels.sizes[-1])
            fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", size["Height"], size["Width"], 0, 0))
        os.write(terminal, data)
