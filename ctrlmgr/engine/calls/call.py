"""Calls as data: an HTTP request to another process, and its reply.

Guarantees: a `CallOut` returns one `Reply` for each call, in the order of the calls. If a call gets no answer, its
reply contains the reason, and no error is raised.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from random import Random
from typing import Final, NamedTuple, TypeAlias, TypeVar

from ctrlmgr.engine.strategy import State

T = TypeVar("T")


class Credentials(NamedTuple):
    """The credentials that a call sends."""

    headers: Mapping[str, str]
    certificate: bytes = b""
    """A client certificate and its key, in PEM, or empty if the call presents no certificate."""


ANONYMOUS: Final = Credentials({})


class Tries(NamedTuple):
    """The rules for retries of a call that got no answer or whose answer requests a retry (apiserver `webhook`)."""

    most: int
    pause: float
    """The number of seconds between the first and the second try."""
    factor: float
    """The factor by which the pause between tries grows."""


ONCE: Final = Tries(1, 0.0, 1.0)


class Call(NamedTuple):
    """An HTTP request to another process: by default a POST of JSON."""

    url: str
    body: bytes
    timeout: float
    """The timeout of the call in seconds, from connecting to the last byte of the answer."""
    ca_bundle: bytes = b""
    """PEM certificates of the authorities that may have signed the server's certificate; empty for the system's
    authorities.
    """
    address: tuple[str, int] | None = None
    """The address to which the call connects instead of the URL's host.

    The certificate of the server must still name the URL's host.
    """
    credentials: Credentials = ANONYMOUS
    server_name: str = ""
    """The name that the server's certificate must contain, if it differs from the URL's host."""
    is_checked: bool = True
    """Whether the server's certificate is verified."""
    tries: Tries = ONCE
    method: str = "POST"
    is_plain: bool = False
    """Whether the first answer is final, even if it is a redirect or requests a retry."""


class Reply(NamedTuple):
    """The answer to a call, or the reason why the call has no answer."""

    code: int = 0
    media_type: str = ""
    body: bytes = b""
    problem: str = ""
    """The reason why the call has no answer, worded as in Go, such as `context deadline exceeded`; empty if it has one.
    """
    seconds: float = 0.0
    retry_after: int | None = None
    """The number of seconds after which the caller should retry, from the answer's `Retry-After` header.

    The value is None if the header is not a whole number of seconds.
    """


UNREACHABLE: Final = Reply(problem="dial tcp: no calls are possible in this process")
"""The reply to every call of a driver that has no connections to other processes."""


class CallOut(NamedTuple):
    """A command that makes calls, all at the same time.

    The driver sends the operation one `Reply` for each call, in the order of the calls. A failed call raises no error.
    """

    calls: Sequence[Call]


Calling: TypeAlias = Generator[CallOut, list[Reply], T]
"""An operation whose only commands are calls to other processes."""


class CallInputs(NamedTuple):
    """The inputs of a call: the state from which Services are resolved, and the random source of uids and choices."""

    view: State
    random: Random
