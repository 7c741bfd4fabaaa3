"""Renews the leases of simulated nodes; all leases that are due at the same time are renewed together.

Guarantees: each lease is renewed in the name of its node every ten seconds, with a delay of up to one second. Because
of the delay, one reconcile and one group commit of the log can renew all leases that are due. Only one thread may renew
leases; nodes may be added or removed on any thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

import structlog

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key
from ctrlmgr.client import EngineClient
from ctrlmgr.clock import Clock, format_time
from ctrlmgr.errors import AlreadyExists, ApiError
from ctrlmgr.informer import Lister
from ctrlmgr.simulation.nodes import lease

log = structlog.get_logger(__name__)

NAMESPACE: Final = "kube-node-lease"
PERIOD: Final = 10.0
"""The number of seconds between two renewals of a lease."""
_GATHER: Final = 1.0
_MOST: Final = 256
"""The maximum number of leases that one renewal renews."""


class Renewals:
    """The times at which leases are due for renewal."""

    def __init__(self, nodes: Lister, leases: Lister, *, clock: Clock) -> None:
        """Create an instance that reads objects from these caches."""
        self._nodes = nodes
        self._leases = leases
        self._clock = clock
        self._due: dict[str, float] = {}

    def restart(self) -> None:
        """Stop renewing the leases of all nodes, because another process may have renewed their leases."""
        self._due.clear()

    def drop(self, name: str) -> None:
        """Stop renewing a node's lease."""
        self._due.pop(name, None)

    def begin(self, node: Object, client: EngineClient) -> None:
        """Start renewing a node's lease, and create it if it is missing; `client` writes as the node."""
        if node.name in self._due:
            return
        self._due[node.name] = self._clock.monotonic()
        if self._leases.get(Key(NAMESPACE, node.name)) is None:
            self._make(node.name, node.uid, client)

    def _make(self, name: str, uid: str, client: EngineClient) -> None:
        try:
            client.create(Object.from_dict(lease(name, uid, format_time(self._clock.now()))))
        except AlreadyExists:
            log.debug("lease already exists", node=name)
        self._due[name] = self._clock.monotonic() + PERIOD

    def renew(self, client: EngineClient, acting: Callable[[str], EngineClient]) -> float:
        """Renew the leases that are due, with the clients that `acting` returns.

        Return the seconds until the next lease is due.
        """
        now = self._clock.monotonic()
        due = [name for name, at in [*self._due.items()] if at <= now]
        there = [name for name in due[:_MOST] if self._is_there(name, acting)]
        found = [*self._renewed(there)]
        outcomes = client.update_each([(acting(name).of_canonical_objects(), obj) for name, obj in found])
        for (name, _), outcome in zip(found, outcomes, strict=True):
            if isinstance(outcome, ApiError):  # The next call reads the lease again and retries.
                log.info("renewing lease failed", node=name, error=str(outcome))
            else:
                self._due[name] = now + PERIOD
        return 0.0 if len(due) > _MOST else _GATHER

    def _is_there(self, name: str, acting: Callable[[str], EngineClient]) -> bool:
        """Return whether a node has a lease; if the lease was deleted, create the lease again."""
        if self._leases.get(Key(NAMESPACE, name)) is not None:
            return True
        node = self._nodes.get(Key("", name))
        if node is None:
            self.drop(name)
        else:
            self._make(name, node.uid, acting(name))
        return False

    def _renewed(self, names: Iterable[str]) -> Iterator[tuple[str, Object]]:
        now = format_time(self._clock.now())
        for name in names:
            current = self._leases.get(Key(NAMESPACE, name))
            assert current is not None  # The lease exists, see `_is_there`.
            fields = current.to_dict()
            desired = lease(name, "", now)["spec"]
            yield name, Object.from_dict({**fields, "spec": {**fields.get("spec", {}), **desired}})
