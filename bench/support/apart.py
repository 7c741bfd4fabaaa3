"""Runs a load in its own process, which reads its input as JSON from standard input and prints the result."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Awaitable, Callable
from typing import TypeVar

import msgspec
import uvloop

Q = TypeVar("Q")
A = TypeVar("A")


def ask(module: str, question: object, type_: type[A]) -> A:
    """Run `module` in its own process; raises CalledProcessError if a response is not as expected."""
    command = [sys.executable, "-m", module]
    done = subprocess.run(command, input=msgspec.json.encode(question), stdout=subprocess.PIPE, check=True)
    return msgspec.json.decode(done.stdout, type=type_)


def answer(type_: type[Q], run: Callable[[Q], Awaitable[object]]) -> None:
    """Run the load that the JSON on standard input describes."""

    async def made() -> object:
        return await run(msgspec.json.decode(sys.stdin.buffer.read(), type=type_))

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        found = runner.run(made())
    sys.stdout.buffer.write(msgspec.json.encode(found))
