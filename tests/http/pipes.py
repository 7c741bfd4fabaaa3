"""A connection in memory: each side immediately receives the bytes that the other side writes."""

from __future__ import annotations

from ctrlmgr.http.tunnel import Receiver


class Pipe:
    """One side of a pipe; it stores written bytes until a receiver is attached to the other side."""

    def __init__(self) -> None:
        self.other: Pipe
        self.receiver: Receiver | None = None
        self.is_paused = False
        self.is_closed = False
        self.is_reading = True
        self.held = b""

    def attach(self, receiver: Receiver) -> None:
        self.receiver = receiver
        held, self.held = self.held, b""
        if held:
            receiver.receive(held)

    def write(self, data: bytes) -> None:
        if self.is_closed:
            return
        if self.other.receiver is None:
            self.other.held += data
        else:
            self.other.receiver.receive(data)

    def pause_reading(self) -> None:
        self.is_reading = False

    def resume_reading(self) -> None:
        self.is_reading = True

    def finish(self) -> None:
        for each in (self, self.other):
            if not each.is_closed:
                each.is_closed = True
                if each.receiver is not None:
                    each.receiver.end()

    abort = finish


def pipe() -> tuple[Pipe, Pipe]:
    """Return both sides of a new connection."""
    one, two = Pipe(), Pipe()
    one.other, two.other = two, one
    return one, two


class StoringReceiver:
    """A receiver that stores the received bytes."""

    def __init__(self) -> None:
        self.data = b""
        self.messages: list[bytes] = []
        self.is_over = False
        self.resumed = 0

    def receive(self, data: bytes) -> None:
        self.data += data

    def message(self, data: bytes) -> None:
        self.messages.append(data)

    def resume(self) -> None:
        self.resumed += 1

    def end(self) -> None:
        self.is_over = True
