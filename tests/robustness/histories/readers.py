"""Clients that get and list the newest, a cached, a not older and an exact state, also page by page."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.robustness.histories.history import Item, Page, Read, Selection, digest_of
from tests.robustness.histories.history_cluster import COLORS, NAMES, NAMESPACES, RESOURCES, HistoryCluster, revision_of
from tests.robustness.wire import Connection, ConnectionLost, RequestNotSent, Response, closing, path_of

_KINDS = {"configmaps": "ConfigMap", "services": "Service"}
_WAYS = ("get", "get", "newest", "newest", "cached", "not older", "exact", "exact", "paged", "paged")
_DREAM = 0.01
"""The share of reads that request a future revision; each such read may take three seconds."""

_NEVER = 1_000_000
"""A number of revisions that is larger than the log of any run."""

_FAR = 200
"""The maximum age of the revision of an exact read, in revisions."""


class Reader:
    """A client that only reads."""

    def __init__(self, world: HistoryCluster, number: int, pause: float) -> None:
        self._world = world
        self._pause = pause
        self._random = world.random(f"reader {number}")
        self._connections = world.connections()
        self._dreams = number == 0  # one actor reads future revisions at once; others rarely do

    async def run(self) -> None:
        with closing(self._connections):
            while self._world.loaded:
                await self._read_something()
                await asyncio.sleep(self._random.random() * self._pause)

    async def _read_something(self) -> None:
        read = self._choose()
        try:
            await self._read(read)
            self._dreams = self._dreams and read.pages[-1].code != 504
        except RequestNotSent:
            await asyncio.sleep(0.05)
        except ConnectionLost:
            return  # the answer contains no data

    def _choose(self) -> Read:
        chance, newest = self._random, self._world.newest
        way = "future" if self._dreams or chance.random() < _DREAM else chance.choice(_WAYS)
        read = Read(
            server=chance.randrange(len(self._connections)),
            resource=chance.choice(RESOURCES),
            selection=choose_selection(chance),
        )
        match way:
            case "get":
                read.get = True
                read.selection = Selection(chance.choice(NAMESPACES), chance.choice(NAMES))
            case "cached":
                read.version = "0"
            case "not older":
                read.version, read.match = str(max(newest - chance.randrange(_FAR), 1)), "NotOlderThan"
            case "exact":
                read.version, read.match = str(max(newest - chance.randrange(_FAR), 1)), "Exact"
            case "future":
                ahead = _NEVER if self._dreams else chance.choice((1, 5, 50, _NEVER))
                read.version, read.match = str(newest + ahead), chance.choice(("Exact", "NotOlderThan"))
            case "paged":
                read.limit = chance.randrange(1, 4)
        return read

    async def _read(self, read: Read) -> None:
        """Read all pages of a list; if the list expires, the remaining pages count as another read."""
        connection = self._connections[read.server]
        self._world.history.reads.append(read)
        token = ""
        while True:
            fields = await self._page(connection, read, token)
            token = fields.get("metadata", {}).get("continue", "")
            if not token:
                read.whole = True
                return
            if read.pages[-1].code == 410:
                items = [each for page in read.pages for each in page.items]
                after = f"{items[-1].namespace}/{items[-1].name}"
                read = Read(
                    server=read.server, resource=read.resource, selection=read.selection, limit=read.limit, after=after
                )
                self._world.history.reads.append(read)
            await asyncio.sleep(self._random.random() * self._pause)

    async def _page(self, connection: Connection, read: Read, token: str) -> dict[str, Any]:
        selection = read.selection
        query = {"continue": token} if token else {"resourceVersion": read.version, "resourceVersionMatch": read.match}
        query |= {"limit": str(read.limit) if read.limit else ""}
        if not read.get:
            query |= selection.query
        path = path_of(
            read.resource,
            selection.namespace,
            selection.name if read.get else "",
            {name: value for name, value in query.items() if value},
        )
        called = self._world.now()
        answer = await connection.request("GET", path)
        page = page_of(read, answer, called, self._world.now())
        read.pages.append(page)
        self._world.tell(page.revision)
        return dict(answer.fields)


def page_of(read: Read, answer: Response, called: int, returned: int) -> Page:
    """Return the objects in a response in the form in which a history stores them."""
    if answer.code != 200:
        return Page(called, returned, answer.code, 0, [])
    fields = answer.fields
    kind = {"kind": _KINDS[read.resource], "apiVersion": "v1"}
    items = [fields] if read.get else [{**kind, **each} for each in fields["items"]]
    return Page(called, returned, answer.code, revision_of(fields), [item_of(each) for each in items])


def item_of(fields: dict[str, Any]) -> Item:
    """Return an object in the form in which a history stores it."""
    metadata = fields["metadata"]
    return Item(metadata["namespace"], metadata["name"], revision_of(fields), digest_of(fields))


def choose_selection(chance: Any) -> Selection:
    """Choose a random selection: all objects, a namespace, a name, colors, or a combination."""
    namespace = chance.choice(("", *NAMESPACES))
    name = chance.choice(NAMES) if chance.random() < 0.15 else ""
    if chance.random() < 0.5:
        return Selection(namespace, name)
    colors = tuple(sorted(chance.sample([color for color in COLORS if color], chance.randrange(1, 3))))
    return Selection(namespace, name, chance.choice(("in", "notin")), colors)
