"""Finds free ports of this machine."""

from __future__ import annotations

import socket
from contextlib import ExitStack


def free_ports(count: int) -> list[int]:
    """Return distinct free ports; another program can take a port before the caller uses it."""
    with ExitStack() as stack:
        listeners = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [each.getsockname()[1] for each in listeners]


def free_port() -> int:
    """Return a free port; see `free_ports`."""
    return free_ports(1)[0]
