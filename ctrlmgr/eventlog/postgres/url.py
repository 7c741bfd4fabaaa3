"""A PostgreSQL URL: which servers it names, and how a connection to one of them is asked for.

Guarantees:
- Several servers may be named in any of the usual ways: `postgresql://a:5432,b:5433/db`, or `host=` and `port=` in the
  query, several times over or with commas, as libpq and SQLAlchemy know them.
- Who leaves it to us is asked for nothing less than `sslmode=verify-full` on the way to another host: a server whose
  certificate is not for its name is not let near a password.
- A peer that is gone is noticed within about 10 seconds, whatever the network does with the packets.
"""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from psycopg import pq
from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from ctrlmgr.errors import SettingsError

_DRIVER: Final = "postgresql+psycopg"
_DEFAULT_PORT: Final = 5432
_SYSTEM_ROOTS_SINCE: Final = 16_00_00
"""The version of libpq that knows `sslrootcert=system`."""

_TIMEOUTS: Final[Mapping[str, str | int]] = {
    "application_name": "ctrlmgr",
    "connect_timeout": 5,  # seconds, for each server
    "keepalives": 1,
    "keepalives_idle": 5,  # seconds until the first probe
    "keepalives_interval": 2,  # seconds between probes
    "keepalives_count": 3,  # probes lost until the peer counts as dead
    "tcp_user_timeout": 8000,  # milliseconds that sent data may stay unacknowledged
}
"""Connection parameters that a URL may set otherwise."""

_OURS: Final = frozenset({"host", "port", "target_session_attrs"})
"""Parameters of the query that say which server, which is decided here and in `postgres_servers`."""

_PRIMARY: Final = frozenset({"", "read-write", "primary"})


class Place(NamedTuple):
    """Where a server is: a name, an address or the directory of a socket, and a port."""

    host: str
    port: int

    @property
    def is_here(self) -> bool:
        """Whether what is sent there stays on this machine."""
        if self.host in ("", "localhost") or self.host.startswith(("/", "@")):
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    def __str__(self) -> str:
        return f"{self.host or 'localhost'}:{self.port}"


class Target(NamedTuple):
    """What a URL asks for."""

    url: URL
    """The URL without servers, for SQLAlchemy's dialect."""
    places: Sequence[Place]
    wants_primary: bool
    """Whether a server will not do that only follows another one."""

    def parameters(self, place: Place, defaults: Mapping[str, str | int]) -> dict[str, str | int]:
        """Return the connection parameters for one of the servers, beside database, user and password.

        The URL beats `defaults`, which beat those of `_TIMEOUTS`.
        """
        named = {name: _single(value) for name, value in self.url.query.items()}
        where: dict[str, str | int] = {"host": place.host} if place.host else {}
        return {**_TIMEOUTS, **_security(place, named), **defaults, **named, **where, "port": place.port}

    def unverified(self) -> list[Place]:
        """Return the servers on other hosts that are not asked, by the URL's own wish, to prove who they are."""
        modes = {
            place: self.parameters(place, {}).get("sslmode") or os.environ.get("PGSSLMODE") for place in self.places
        }
        return [place for place, mode in modes.items() if not place.is_here and mode != "verify-full"]


def parse_url(url: str) -> Target:
    """Read `postgresql://…`, `postgres://…` or SQLAlchemy's own form of it; raises `SettingsError`."""
    account, hosts, rest = _split(url.partition("://")[2])
    try:
        parsed = make_url(f"{_DRIVER}://{account}{rest}")
    except (ArgumentError, ValueError) as error:
        raise SettingsError(f"database.url: this is no URL of a PostgreSQL database: {error}") from error
    query = parsed.query
    places = _places(hosts) or _places(",".join(_several(query.get("host"))), _several(query.get("port")))
    if len(places) > 1 and "hostaddr" in query:
        raise SettingsError("database.url: hostaddr goes with one host; name several hosts by their addresses instead")
    wanted = _single(query.get("target_session_attrs", ""))
    return Target(parsed.difference_update_query(_OURS), places or [_default_place(query)], wanted in _PRIMARY)


def _split(address: str) -> tuple[str, str, str]:
    """Split what follows the scheme into the account with its `@`, the servers, and the rest."""
    end = min((at for at in map(address.find, "/?") if at >= 0), default=len(address))
    account, at, hosts = address[:end].rpartition("@")
    return account + at, hosts, address[end:]


def _places(hosts: str, ports: Sequence[str] = ()) -> list[Place]:
    """Read `a:1,b:2`, or `a,b` with ports beside, of which one does for all."""
    if not hosts:
        return []
    found = [_place(host) for host in hosts.split(",")]
    if not ports:
        return found
    if len(ports) not in (1, len(found)):
        raise SettingsError(f"database.url: {len(found)} hosts but {len(ports)} ports; give one for all or one each")
    given = [ports[0]] * len(found) if len(ports) == 1 else ports
    return [Place(place.host, _port(port)) for place, port in zip(found, given, strict=True)]


def _place(text: str) -> Place:
    if text.startswith("["):
        host, _, port = text[1:].partition("]")
        return Place(host, _port(port.removeprefix(":")))
    if text.count(":") > 1:  # an IPv6 address as it is in a query
        return Place(text, _port(""))
    host, _, port = text.partition(":")
    return Place(host, _port(port))


def _port(text: str) -> int:
    text = text or os.environ.get("PGPORT", "")
    if text and not (text.isdecimal() and 0 < int(text) < 65536):
        raise SettingsError(f"database.url: {text!r} is no port; use a number from 1 to 65535")
    return int(text or _DEFAULT_PORT)


def _default_place(query: Mapping[str, str | tuple[str, ...]]) -> Place:
    """Return where libpq goes when it is not told: what its environment says, or a socket of this machine."""
    return Place(os.environ.get("PGHOST", ""), _port(_single(query.get("port", ""))))


def _several(value: str | tuple[str, ...] | None) -> list[str]:
    return [] if not value else ",".join([value] if isinstance(value, str) else value).split(",")


def _single(value: str | tuple[str, ...]) -> str:
    return value if isinstance(value, str) else value[-1]


def _security(place: Place, named: Mapping[str, str]) -> dict[str, str]:
    """Return how a connection is secured that the URL says nothing about."""
    if place.is_here or "sslmode" in named or "PGSSLMODE" in os.environ:
        return {}
    security = {"sslmode": "verify-full"}
    trusts = "sslrootcert" in named or "PGSSLROOTCERT" in os.environ or _own_roots().exists()
    if not trusts and pq.version() >= _SYSTEM_ROOTS_SINCE:
        security["sslrootcert"] = "system"
    return security


def _own_roots() -> Path:
    """Return the file in which libpq looks for the authorities that a user trusts."""
    return Path("~/.postgresql/root.crt").expanduser()
