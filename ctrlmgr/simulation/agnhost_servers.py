"""The servers whose ports are known: the subcommands of agnhost, the image of Kubernetes' tests.

Guarantees: the ports of all other containers are unknown, and their network probes pass. The ports in `containerPort`
are not used, because Kubernetes treats them as information only (`ContainerPort` in core/v1 types.go).

The ports and flags are those of agnhost's source, `test/images/agnhost`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Final, NamedTuple

IMAGE: Final = "agnhost"

_PORTS: Final[Mapping[str, Mapping[str, int]]] = {
    "grpc-health-checking": {"--port": 5000, "--http-port": 8080},
    "liveness": {"": 8080},
    "netexec": {"--http-port": 8080},
    "pause": {},
    "serve-hostname": {"--port": 9376},
    "test-webserver": {"--port": 80},
}
"""The flags that set the ports of each subcommand, with their default values. The key "" means a port that no flag
sets.
"""
_HEALTHY_FOR: Final = 10.0
"""The number of seconds for which `liveness` responds to /healthz with 200; after that, it responds with 500."""


class Server(NamedTuple):
    """The known properties of a server in a container."""

    ports: frozenset[int]
    """The ports on which the server listens."""
    sickens_at: float | None = None
    """The seconds after the server's start at which /healthz begins to respond with 500; None if this never happens."""

    def answers(self, port: int, path: str, seconds: float) -> bool:
        """Return whether a request succeeds `seconds` after the server's start.

        If `path` is empty, only a connection is made.
        """
        is_sick = self.sickens_at is not None and seconds > self.sickens_at and path.startswith("/healthz")
        return port in self.ports and not is_sick


def server_of(image: str, words: Sequence[str]) -> Server | None:
    """Return the server that an image runs with this command; None if the container runs no known server."""
    if image != IMAGE:
        return None
    arguments = [*words[1:]] if words and words[0].rsplit("/", 1)[-1] == IMAGE else [*words]
    subcommand = arguments[0] if arguments else "pause"
    if subcommand not in _PORTS:
        return None
    ports = frozenset(_flag(arguments, flag, default) for flag, default in _PORTS[subcommand].items())
    return Server(ports, _HEALTHY_FOR if subcommand == "liveness" else None)


def _flag(arguments: Sequence[str], flag: str, default: int) -> int:
    """Return the value of a flag, which is given as `--flag=1` or `--flag 1`."""
    given: dict[str, Any] = dict(each.partition("=")[::2] for each in arguments if each.startswith("--"))
    following = dict(pairwise(arguments))
    value = given.get(flag) or following.get(flag) or ""
    return int(value) if value.isdecimal() else default
