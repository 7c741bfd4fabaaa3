"""Calls as data: an HTTP request to another process, and the reply.

Guarantees: a `CallOut` is answered with one `Reply` a call, in their order; a call without an answer has a
reply too, never an error.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from random import Random
from typing import Final, NamedTuple, TypeAlias, TypeVar

from ctrlmgr.engine.strategy import State

T = TypeVar("T")


class Credentials(NamedTuple):
    """Who the caller is."""

    headers: Mapping[str, str]
    certificate: bytes = b""
    """A certificate and its key, in PEM; empty for none."""


ANONYMOUS: Final = Credentials({})


class Tries(NamedTuple):
    """How often a call is tried that was not answered, or told to come again (apiserver `util/webhook`)."""

    most: int
    pause: float
    """Seconds before the second try."""
    factor: float
    """By how much each further pause is longer."""


ONCE: Final = Tries(1, 0.0, 1.0)


class Call(NamedTuple):
    """An HTTP request to another process: by default a POST of JSON."""

    url: str
    body: bytes
    timeout: float
    """Seconds until it is given up, from connecting to the last byte of the answer."""
    ca_bundle: bytes = b""
    """Authorities, in PEM, that may have signed the server's certificate; empty for those that the system trusts."""
    address: tuple[str, int] | None = None
    """Where to connect to instead of the URL's host, which still is the name that the certificate must bear."""
    credentials: Credentials = ANONYMOUS
    server_name: str = ""
    """The name that the server's certificate must bear if it is not the URL's host."""
    is_checked: bool = True
    """Whether the server must have a certificate of those authorities."""
    tries: Tries = ONCE
    method: str = "POST"


class Reply(NamedTuple):
    """What came back: an answer, or why there is none."""

    code: int = 0
    media_type: str = ""
    body: bytes = b""
    problem: str = ""
    """Why there is no answer, in Go's words (`context deadline exceeded`); empty if there is one."""
    seconds: float = 0.0
    retry_after: int | None = None
    """Seconds after which to come again, where the answer says so in whole seconds (`Retry-After`)."""


class CallOut(NamedTuple):
    """Make calls, all at the same time; the driver sends a `Reply` for each, in their order, and never raises."""

    calls: Sequence[Call]


Calling: TypeAlias = Generator[CallOut, list[Reply], T]
"""An operation that does nothing but call others."""


class Surroundings(NamedTuple):
    """What it takes to make a call: the Services that there are, and what uids and choices are drawn from."""

    view: State
    random: Random
