"""Clients that create, update, patch and delete the same few objects concurrently, as clients of Kubernetes do."""

from __future__ import annotations

import asyncio
from itertools import product
from typing import Any, NamedTuple

from tests.robustness.histories.history import LAST, Write
from tests.robustness.histories.history_cluster import (
    COLORS,
    NAMES,
    NAMESPACES,
    RESOURCES,
    HistoryCluster,
    ObjectKey,
    revision_of,
)
from tests.robustness.histories.tail import AGENT
from tests.robustness.wire import Connection, ConnectionLost, RequestNotSent, Response, closing, path_of

_VERBS = ("create", "update", "update", "patch", "delete")
_METHODS = {"create": "POST", "update": "PUT", "patch": "PATCH", "delete": "DELETE"}
_KINDS = {"configmaps": "ConfigMap", "services": "Service"}
_SERVICES = 0.15
"""The share of writes to Services; each creation of a Service also allocates an address."""

_STALE = 0.3
_PADDED = 0.1
_PADDING = "x" * 2000


class Writer:
    """A client that writes all the time, with short random pauses."""

    def __init__(self, world: HistoryCluster, number: int, pause: float) -> None:
        self._world = world
        self._number = number
        self._pause = pause
        self._random = world.random(f"writer {number}")
        self._connections = world.connections()
        self._count = 0

    async def run(self) -> None:
        with closing(self._connections):
            while self._world.loaded:
                await self._write_something()
                await asyncio.sleep(self._random.random() * self._pause)

    async def _write_something(self) -> None:
        chance = self._random
        resource = RESOURCES[chance.random() < _SERVICES]
        place = ObjectKey(resource, chance.choice(NAMESPACES), chance.choice(NAMES))
        verb = chance.choice(_VERBS)
        self._count += 1
        write = Write(
            id=f"{self._number}-{self._count}",
            server=chance.randrange(len(self._connections)),
            verb=verb,
            resource=resource,
            namespace=place.namespace,
            name=place.name,
            called=0,
            expected=self._expected(verb, place),
        )
        body = _body(write, chance.choice(COLORS), _PADDING if chance.random() < _PADDED else "")
        await submit(self._world, self._connections[write.server], write, body)

    def _expected(self, verb: str, place: ObjectKey) -> int:
        """Choose the resourceVersion for a write: the newest version that a client has received, or none."""
        if verb in ("create", "patch") or self._random.random() < _STALE:
            return 0
        return self._world.seen.get(place, 0)


async def submit(world: HistoryCluster, connection: Connection, write: Write, body: object) -> None:
    """Make one attempt and record it, unless the request was not sent because the connection failed."""
    named = "" if write.verb == "create" else write.name
    kind = "application/merge-patch+json" if write.verb == "patch" else ""
    path = path_of(write.resource, write.namespace, named)
    write.called = world.now()
    try:
        answer = await connection.request(_METHODS[write.verb], path, body, agent=AGENT + write.id, content_type=kind)
    except RequestNotSent:
        await asyncio.sleep(0.05)
        return
    except ConnectionLost:
        world.history.writes.append(write)
        return
    write.returned, write.code = world.now(), answer.code
    world.history.writes.append(write)
    if write.acknowledged:
        _learn(world, write, answer)
    else:
        write.message = answer.fields["message"]


def _learn(world: HistoryCluster, write: Write, answer: Response) -> None:
    fields = answer.fields
    place = ObjectKey(write.resource, write.namespace, write.name)
    if write.verb == "delete":
        world.seen.pop(place, None)
    else:
        write.revision = world.seen[place] = revision_of(fields)
    world.tell(write.revision)


def _body(write: Write, color: str, padding: str) -> dict[str, Any]:
    if write.verb == "delete":
        options = {"preconditions": {"resourceVersion": str(write.expected)}} if write.expected else {}
        return {"kind": "DeleteOptions", "apiVersion": "v1", **options}
    annotations = {"write": write.id, "padding": padding}
    metadata: dict[str, Any] = {"annotations": annotations, "labels": {"color": color} if color else {}}
    if write.verb == "patch":
        return {"metadata": {**metadata, "labels": {"color": color or None}}}
    metadata["name"] = write.name
    if write.expected:
        metadata["resourceVersion"] = str(write.expected)
    fields = {"kind": _KINDS[write.resource], "apiVersion": "v1", "metadata": metadata}
    if write.resource == "services":
        fields["spec"] = {"ports": [{"port": 80}], "selector": {"app": write.name}}
    return fields


class FinalObject(NamedTuple):
    """One of the objects that are written at the end of a run."""

    resource: str
    namespace: str
    name: str
    color: str
    revision: int


async def write_the_last(world: HistoryCluster, ending: str = "", tries: int = 1) -> list[FinalObject]:
    """Create an object of each resource in each namespace and with each color; each create must be acknowledged within
    a few attempts.

    `ending` is part of the objects' names, to distinguish the objects from those of an earlier call.
    """
    connections = world.connections()
    written: list[FinalObject] = []
    with closing(connections):
        for number, (resource, namespace, color) in enumerate(product(RESOURCES, NAMESPACES, COLORS)):
            server = number % len(connections)
            for attempt in range(1, tries + 1):
                name = f"{LAST}{ending}{number}" + ("" if attempt == 1 else f"-{attempt}")
                write = Write(
                    id=name, server=server, verb="create", resource=resource, namespace=namespace, name=name, called=0
                )
                await submit(world, connections[server], write, _body(write, color, ""))
                if write.acknowledged:
                    break
            assert write.acknowledged, f"all is well again, but {write}"
            written.append(FinalObject(resource, namespace, name, color, write.revision))
    return written
