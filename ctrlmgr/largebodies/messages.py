"""Defines and encodes the messages between a server and its worker process.

A frame consists of a length in eight bytes, followed by a pickle. Frames contain clients' data as bytes only, so that
the server never unpickles data that a client wrote. Apart from clients' data, server and worker trust each other.

Guarantees: a frame contains an object as the object's encoded bytes, and a kind as the kind's name. A decoded error has
the same class, arguments and details as the original.
"""

from __future__ import annotations

import pickle
import socket
from collections.abc import Callable, Mapping
from io import BytesIO
from struct import Struct
from typing import Any, Final, NamedTuple

from ctrlmgr.api.object import Object
from ctrlmgr.engine.kind import GroupVersionKind, Kind
from ctrlmgr.errors import CtrlmgrError

HEADER: Final = Struct(">Q")
"""The encoding of the length that precedes a pickle in a frame."""
_READ: Final = 1 << 20

KindOf = Callable[[GroupVersionKind], Kind | None]


class Job(NamedTuple):
    """A job that the server sends to the worker process."""

    epoch: int
    """The epoch of the server's kinds; the epoch increases when a kind changes."""
    seed: int
    """The seed of the job's random number generator."""
    now: int
    """The current time that the job uses, in microseconds since 1970."""
    work: bytes
    """A pickled function and its arguments except the first one, the engine; the function returns an operation."""


class WorkerMessage(NamedTuple):
    """A query that the worker sends to the server, or a command of the worker's operation."""

    what: str
    arguments: tuple[Any, ...]


class Answer(NamedTuple):
    """The server's answer to a `WorkerMessage`."""

    value: Any = None
    error: CtrlmgrError | None = None


class JobResult(NamedTuple):
    """The result of a job in the worker process."""

    value: Any = None
    error: CtrlmgrError | None = None
    failure: str = ""
    """The traceback of an unexpected exception in the job; empty if there was none."""
    out_of_memory: bool = False
    """Whether the job exceeded the memory limit; if so, the worker process exits."""


class _Pickler(pickle.Pickler):
    def persistent_id(self, obj: Any) -> GroupVersionKind | None:
        return obj.gvk if isinstance(obj, Kind) else None

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, Object):
            return Object, (obj.resource, obj.body, obj.revision)
        if isinstance(obj, CtrlmgrError):
            return _error, (type(obj), obj.args, dict(obj.__dict__))
        return NotImplemented


class _Unpickler(pickle.Unpickler):
    def __init__(self, data: bytes, kind_of: KindOf) -> None:
        super().__init__(BytesIO(data))
        self._kind_of = kind_of

    def persistent_load(self, pid: Any) -> Kind:
        kind = self._kind_of(pid)
        if kind is None:
            raise LookupError(f"there is no kind {pid}")
        return kind


def _error(class_: type[CtrlmgrError], arguments: tuple[Any, ...], attributes: Mapping[str, Any]) -> CtrlmgrError:
    error = class_.__new__(class_, *arguments)
    error.args = arguments
    error.__dict__.update(attributes)
    return error


def dumped(value: Any) -> bytes:
    """Encode a value of a message as bytes."""
    buffer = BytesIO()
    _Pickler(buffer, protocol=5).dump(value)
    return buffer.getvalue()


def loaded(data: bytes, kind_of: KindOf) -> Any:
    """Decode a value that `dumped` encoded; raises `LookupError` if `kind_of` does not know a kind in the value."""
    return _Unpickler(data, kind_of).load()


def framed(value: Any) -> bytes:
    """Encode a value of a message as a frame."""
    data = dumped(value)
    return HEADER.pack(len(data)) + data


class WorkerSocket:
    """The worker's end of the socket to the server; its methods block."""

    def __init__(self, end: socket.socket, kind_of: KindOf) -> None:
        """Create the worker's end of the socket `end`."""
        self._socket = end
        self._kind_of = kind_of

    def send(self, value: Any) -> None:
        """Send a frame; raises `OSError` if the server has closed the socket."""
        self._socket.sendall(framed(value))

    def receive(self) -> Any:
        """Wait for a frame and return its value; raises `EOFError` if the server has closed the socket."""
        (length,) = HEADER.unpack(self._read(HEADER.size))
        return loaded(self._read(length), self._kind_of)

    def _read(self, length: int) -> bytes:
        data = bytearray()
        while len(data) < length:
            some = self._socket.recv(min(length - len(data), _READ))
            if not some:
                raise EOFError
            data += some
        return bytes(data)

    def ask(self, what: str, *arguments: Any) -> Any:
        """Return the server's answer to a query; raises the error that the answer contains."""
        self.send(WorkerMessage(what, arguments))
        answer: Answer = self.receive()
        if answer.error is not None:
            raise answer.error
        return answer.value
