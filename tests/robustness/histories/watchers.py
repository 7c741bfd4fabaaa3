"""Clients that watch: some for a short time from any revision, and informers for the whole run."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from tests.robustness.histories.history import BOOKMARK, ERROR, Delivery, Page, Read, Selection, Watch, digest_of
from tests.robustness.histories.history_cluster import RESOURCES, HistoryCluster, ObjectKey, revision_of
from tests.robustness.histories.readers import choose_selection, page_of
from tests.robustness.histories.writers import FinalObject
from tests.robustness.wire import Connection, ConnectionLost, RequestNotSent, path_of

_INITIAL_END = "k8s.io/initial-events-end"
_FAR = 100
"""The maximum distance between the newest revision and the revision at which a watch begins, in either direction."""

_LONGEST = 10.0
"""Seconds after which a casual watcher leaves a stream that has no timeout."""

_SULK = 3.0
"""Seconds for which a slow watcher does not read."""

_decode = msgspec.json.Decoder().decode


class Watcher:
    """A client that watches different selections one after the other."""

    def __init__(self, world: HistoryCluster, number: int, *, slow: bool = False) -> None:
        self._world = world
        self._random = world.random(f"watcher {number}")
        self._slow = slow

    async def run(self) -> None:
        while self._world.loaded:
            watch = self._choose()
            leave_after = watch.timeout + 10 if watch.timeout else self._random.uniform(1, _LONGEST)
            await follow(self._world, watch, leave_after)

    def _choose(self) -> Watch:
        chance, world = self._random, self._world
        watch = Watch(
            server=chance.randrange(len(world.sites)),
            resource=chance.choice(RESOURCES),
            selection=choose_selection(chance),
            version=chance.choice(("", "0", "N", "N")),
            called=0,
            bookmarks=chance.random() < 0.7,
            timeout=chance.choice((0, 1, 3, 3, 4)),
            slow=self._slow,
        )
        if watch.version == "N":
            watch.version = str(max(world.newest + chance.randint(-_FAR, _FAR), 1))
        elif chance.random() < 0.5:
            watch.initial, watch.bookmarks = True, True
        return watch


class Informer:
    """A reflector like client-go's: it lists, and then watches, each time from the last revision of
    the previous watch.
    """

    def __init__(self, world: HistoryCluster, number: int, *, streaming: bool) -> None:
        """If `streaming` is set, the server sends the list as the first watch's initial events (WatchList)."""
        self._world = world
        self._random = world.random(f"informer {number}")
        self._streaming = streaming
        self._name = f"{number}"
        self._resource = RESOURCES[number % 3 == 2]
        self._selection = Selection() if number % 2 else choose_selection(self._random)
        self._current: Watch | None = None

    def has(self, last: FinalObject) -> bool:
        """Return whether the informer has received an object; an object that the informer does not select counts as
        received.
        """
        labels = {"color": last.color} if last.color else {}
        if last.resource != self._resource or not self._selection.matches(last.namespace, last.name, labels):
            return True
        return self._current is not None and _reached(self._current) >= last.revision

    async def run(self) -> None:
        while not self._world.ended.is_set():
            watch = self._begin() if self._streaming else await self._list()
            while watch is not None and not self._world.ended.is_set():
                watch = await self._watch(watch)
            await asyncio.sleep(0.05)

    async def _watch(self, watch: Watch) -> Watch | None:
        """Read one stream; return the next stream, or None if the informer must list again."""
        self._current = watch
        await follow(self._world, watch, None)
        if watch.code == 0:
            await asyncio.sleep(0.05)
        told = watch.deliveries
        if told and told[-1].type == ERROR:
            return None
        if watch.initial and not any(each.initial_end for each in told):
            return None
        later = self._new(str(_reached(watch)))
        if watch.code != 200:  # the stream never began, so the list does not belong to it
            later.listed = watch.listed
        return later

    def _new(self, version: str) -> Watch:
        return Watch(
            server=self._random.randrange(len(self._world.sites)),
            resource=self._resource,
            selection=self._selection,
            version=version,
            called=0,
            bookmarks=True,
            timeout=self._random.randrange(3, 15),
            informer=self._name,
        )

    def _begin(self) -> Watch:
        watch = self._new("")
        watch.initial, watch.listed = True, []
        return watch

    async def _list(self) -> Watch | None:
        read = Read(
            server=self._random.randrange(len(self._world.sites)),
            resource=self._resource,
            selection=self._selection,
            version="0",
            whole=True,
        )
        connection = Connection(self._world.sites[read.server])
        path = path_of(read.resource, read.selection.namespace, "", {"resourceVersion": "0", **read.selection.query})
        called = self._world.now()
        try:
            answer = await connection.request("GET", path)
        except (RequestNotSent, ConnectionLost):
            return None
        finally:
            connection.close()
        page = page_of(read, answer, called, self._world.now())
        read.pages.append(page)
        self._world.history.reads.append(read)
        return self._after(page) if page.code == 200 else None

    def _after(self, page: Page) -> Watch:
        watch = self._new(str(page.revision))
        watch.listed = page.items
        return watch


def _reached(watch: Watch) -> int:
    """Return the last revision that a stream contained."""
    told = [each.revision for each in watch.deliveries if each.type != ERROR]
    return told[-1] if told else int(watch.version or "0")


async def follow(world: HistoryCluster, watch: Watch, leave_after: float | None) -> None:
    """Read one stream to its end and record it; the client leaves the stream after a timeout in seconds, or when the
    run ends.
    """
    connection = Connection(world.sites[watch.server])
    watch.called = world.now()
    reading = asyncio.create_task(_read(world, connection, watch))
    ending = asyncio.create_task(world.ended.wait())
    try:
        await asyncio.wait({reading, ending}, timeout=leave_after, return_when=asyncio.FIRST_COMPLETED)
    finally:
        left = reading.cancel()
        ending.cancel()
        (failure,) = await asyncio.gather(reading, return_exceptions=True)
    if isinstance(failure, RequestNotSent):
        await asyncio.sleep(0.05)
        return
    watch.ended_at = world.now()
    watch.ended = "left" if left else "cut" if isinstance(failure, ConnectionLost) else "clean"
    world.history.watches.append(watch)
    if failure is not None and not isinstance(failure, ConnectionLost | asyncio.CancelledError):
        raise failure


async def _read(world: HistoryCluster, connection: Connection, watch: Watch) -> None:
    lines = connection.lines(path_of(watch.resource, watch.selection.namespace, "", _query(watch)))
    watch.code = int(await anext(lines))
    async for line in lines:
        if watch.code != 200:
            break
        told = _delivery(line, world.now())
        watch.deliveries.append(told)
        if told.type != ERROR:
            world.tell(told.revision)
            world.seen[ObjectKey(watch.resource, told.namespace, told.name)] = told.revision
        if watch.slow and len(watch.deliveries) % 50 == 1:
            await asyncio.sleep(_SULK)


def _query(watch: Watch) -> dict[str, str]:
    query = {"watch": "true", **watch.selection.query}
    if watch.version:
        query["resourceVersion"] = watch.version
    if watch.bookmarks:
        query["allowWatchBookmarks"] = "true"
    if watch.initial is not None:
        query |= {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
    if watch.timeout:
        query["timeoutSeconds"] = str(watch.timeout)
    return query


def _delivery(line: bytes, now: int) -> Delivery:
    event: dict[str, Any] = _decode(line)
    kind, fields = event["type"], event["object"]
    if kind == ERROR:
        return Delivery(ERROR, fields["code"], "", "", fields["reason"], now)
    metadata = fields["metadata"]
    if kind == BOOKMARK:
        ends = metadata.get("annotations", {}).get(_INITIAL_END) == "true"
        return Delivery(BOOKMARK, revision_of(fields), "", "", "", now, ends)
    return Delivery(kind, revision_of(fields), metadata["namespace"], metadata["name"], digest_of(fields), now)
