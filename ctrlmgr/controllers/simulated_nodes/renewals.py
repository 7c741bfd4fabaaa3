"""Renewals of leases: by them the nodes say that they live, all that are due at the same time.

Guarantees: each lease is renewed in the name of its node, every ten seconds, or up to a second later: then it goes with
those that are due by then, as one group of the log, and as one reconcile. One thread at a time renews; on any of them a
node may begin or be dropped.
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
"""Seconds between two renewals of a lease."""
_GATHER: Final = 1.0
_MOST: Final = 256
"""How many leases are renewed in one go."""


class Renewals:
    """Which leases are to be renewed, and when."""

    def __init__(self, nodes: Lister, leases: Lister, *, clock: Clock) -> None:
        """Read what there is from these caches."""
        self._nodes = nodes
        self._leases = leases
        self._clock = clock
        self._due: dict[str, float] = {}

    def restart(self) -> None:
        """Forget all nodes: another process may have renewed their leases meanwhile."""
        self._due.clear()

    def drop(self, name: str) -> None:
        """Renew a node's lease no more."""
        self._due.pop(name, None)

    def begin(self, node: Object, client: EngineClient) -> None:
        """Renew a node's lease from now on, and make it if it has none; `client` writes as the node."""
        if node.name in self._due:
            return
        self._due[node.name] = self._clock.monotonic()
        if self._leases.get(Key(NAMESPACE, node.name)) is None:
            self._make(node.name, node.uid, client)

    def _make(self, name: str, uid: str, client: EngineClient) -> None:
        try:
            client.create(Object.from_dict(lease(name, uid, format_time(self._clock.now()))))
        except AlreadyExists:
            log.debug("lease is there already", node=name)
        self._due[name] = self._clock.monotonic() + PERIOD

    def renew(self, client: EngineClient, acting: Callable[[str], EngineClient]) -> float:
        """Renew what is due, each as `acting` for its node; return the seconds after which to come again."""
        now = self._clock.monotonic()
        due = [name for name, at in [*self._due.items()] if at <= now]
        there = [name for name in due[:_MOST] if self._is_there(name, acting)]
        found = [*self._renewed(there)]
        outcomes = client.update_each([(acting(name).of_canonical_objects(), obj) for name, obj in found])
        for (name, _), outcome in zip(found, outcomes, strict=True):
            if isinstance(outcome, ApiError):  # it is read anew, and renewed with the next
                log.info("lease not renewed", node=name, error=str(outcome))
            else:
                self._due[name] = now + PERIOD
        return 0.0 if len(due) > _MOST else _GATHER

    def _is_there(self, name: str, acting: Callable[[str], EngineClient]) -> bool:
        """Say whether a node has a lease; if not, make it: it has been taken away."""
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
            assert current is not None  # or it would have been made
            fields = current.to_dict()
            wanted = lease(name, "", now)["spec"]
            yield name, Object.from_dict({**fields, "spec": {**fields.get("spec", {}), **wanted}})
