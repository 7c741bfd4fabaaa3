"""Parses a PostgreSQL URL into servers, and connection parameters for each server.

Guarantees:
- A URL can name several servers as libpq and SQLAlchemy do: `postgresql://a:5432,b:5433/db`, or `host=` and `port=` in
  the query, where parameters are repeated or separated by commas.
- The default TLS mode for a server on another host is `sslmode=verify-full`. Therefore a server without a valid
  certificate for its name receives no password.
- A lost server is detected within about 10 seconds, even if the network drops packets.
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
"""The first version of libpq that supports `sslrootcert=system`."""

_TIMEOUTS: Final[Mapping[str, str | int]] = {
    "application_name": "ctrlmgr",
    "connect_timeout": 5,  # seconds for a connection attempt, per server
    "keepalives": 1,
    "keepalives_idle": 5,  # seconds until the first probe
    "keepalives_interval": 2,  # seconds between probes
    "keepalives_count": 3,  # lost probes until the peer counts as dead
    "tcp_user_timeout": 8000,  # maximum milliseconds until sent data is acknowledged
}
"""Connection parameters that a URL may override."""

_OURS: Final = frozenset({"host", "port", "target_session_attrs"})
"""Query parameters that select a server; ctrlmgr evaluates these parameters itself, and libpq does not get them."""

_PRIMARY: Final = frozenset({"", "read-write", "primary"})


class Place(NamedTuple):
    """The address of a server: a host name, an IP address or a socket directory, and a port."""

    host: str
    port: int

    @property
    def is_local(self) -> bool:
        """Return whether the server runs on this machine."""
        if self.host in ("", "localhost") or self.host.startswith(("/", "@")):
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    def __str__(self) -> str:
        return f"{self.host or 'localhost'}:{self.port}"


class Target(NamedTuple):
    """The servers and options that a URL names."""

    url: URL
    """The URL without the servers, from which SQLAlchemy chooses its dialect."""
    places: Sequence[Place]
    wants_primary: bool
    """Whether only a primary server is accepted."""

    def parameters(self, place: Place, defaults: Mapping[str, str | int]) -> dict[str, str | int]:
        """Return the connection parameters for one server, except database, user and password.

        The parameters in the URL override `defaults`, and these override `_TIMEOUTS`.
        """
        named = {name: _single(value) for name, value in self.url.query.items()}
        where: dict[str, str | int] = {"host": place.host} if place.host else {}
        return {**_TIMEOUTS, **_security(place, named), **defaults, **named, **where, "port": place.port}

    def unverified(self) -> list[Place]:
        """Return the servers on other hosts for which the URL's parameters disable the verification of certificates."""
        modes = {
            place: self.parameters(place, {}).get("sslmode") or os.environ.get("PGSSLMODE") for place in self.places
        }
        return [place for place, mode in modes.items() if not place.is_local and mode != "verify-full"]


def parse_url(url: str) -> Target:
    """Parse a URL such as `postgresql://HOST/DATABASE`, `postgres://HOST/DATABASE` or SQLAlchemy's form.

    Raises `SettingsError` if the URL is invalid.
    """
    account, hosts, rest = _split(url.partition("://")[2])
    try:
        parsed = make_url(f"{_DRIVER}://{account}{rest}")
    except (ArgumentError, ValueError) as error:
        raise SettingsError(f"database.url: this is not the URL of a PostgreSQL database: {error}") from error
    query = parsed.query
    places = _places(hosts) or _places(",".join(_several(query.get("host"))), _several(query.get("port")))
    if len(places) > 1 and "hostaddr" in query:
        raise SettingsError("database.url: hostaddr needs a single host; write several addresses as hosts")
    target = _single(query.get("target_session_attrs", ""))
    return Target(parsed.difference_update_query(_OURS), places or [_default_place(query)], target in _PRIMARY)


def _split(address: str) -> tuple[str, str, str]:
    """Split the part after the scheme into the account (with the `@`), the servers, and the rest."""
    end = min((at for at in map(address.find, "/?") if at >= 0), default=len(address))
    account, at, hosts = address[:end].rpartition("@")
    return account + at, hosts, address[end:]


def _places(hosts: str, ports: Sequence[str] = ()) -> list[Place]:
    """Parse servers: `a:1,b:2`, or `a,b` with the list `ports`; a single port applies to all servers."""
    if not hosts:
        return []
    found = [_place(host) for host in hosts.split(",")]
    if not ports:
        return found
    if len(ports) not in (1, len(found)):
        raise SettingsError(
            f"database.url: {len(found)} hosts but {len(ports)} ports; give one port for all hosts, or one for each"
        )
    given = [ports[0]] * len(found) if len(ports) == 1 else ports
    return [Place(place.host, _port(port)) for place, port in zip(found, given, strict=True)]


def _place(text: str) -> Place:
    if text.startswith("["):
        host, _, port = text[1:].partition("]")
        return Place(host, _port(port.removeprefix(":")))
    if text.count(":") > 1:  # an IPv6 address in a query parameter
        return Place(text, _port(""))
    host, _, port = text.partition(":")
    return Place(host, _port(port))


def _port(text: str) -> int:
    text = text or os.environ.get("PGPORT", "")
    if text and not (text.isdecimal() and 0 < int(text) < 65536):
        raise SettingsError(f"database.url: {text!r} is not a port; use a number from 1 to 65535")
    return int(text or _DEFAULT_PORT)


def _default_place(query: Mapping[str, str | tuple[str, ...]]) -> Place:
    """Return the default server from libpq's environment variables; without these, return a local socket."""
    return Place(os.environ.get("PGHOST", ""), _port(_single(query.get("port", ""))))


def _several(value: str | tuple[str, ...] | None) -> list[str]:
    return [] if not value else ",".join([value] if isinstance(value, str) else value).split(",")


def _single(value: str | tuple[str, ...]) -> str:
    return value if isinstance(value, str) else value[-1]


def _security(place: Place, named: Mapping[str, str]) -> dict[str, str]:
    """Return the TLS parameters for a connection whose URL contains no TLS parameters."""
    if place.is_local or "sslmode" in named or "PGSSLMODE" in os.environ:
        return {}
    security = {"sslmode": "verify-full"}
    trusts = "sslrootcert" in named or "PGSSLROOTCERT" in os.environ or _own_roots().exists()
    if not trusts and pq.version() >= _SYSTEM_ROOTS_SINCE:
        security["sslrootcert"] = "system"
    return security


def _own_roots() -> Path:
    """Return the path of the file from which libpq reads trusted certificate authorities."""
    return Path("~/.postgresql/root.crt").expanduser()
