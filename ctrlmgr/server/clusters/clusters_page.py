"""Serves `/clusters`, which creates, lists and deletes the clusters of this process.

| request | answer |
|---|---|
| `GET /clusters` | the list of clusters |
| `POST /clusters` with `{"name": NAME}` | creates a cluster, and returns it with its kubeconfig when it is ready |
| `POST /clusters` with `{"name": NAME, "from": SOURCE, "at": REVISION}` | creates a fork of the cluster SOURCE |
| `GET /clusters/NAME` | a cluster with its kubeconfig |
| `DELETE /clusters/NAME` | deletes the cluster |

Users need rights for these nonResourceURLs. A user with the right to read `/clusters/NAME` receives the token of this
cluster's administrator.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final, Protocol

import msgspec

from ctrlmgr.errors import BadRequest, MethodNotAllowed, StatusDetails
from ctrlmgr.server.presenting.responses import PAGE_NOT_FOUND, Response
from ctrlmgr.server.request import Request
from ctrlmgr.server.workers import Workers

_WORKERS: Final = 4
"""Maximum number of clusters that are created or deleted at the same time."""


class NewCluster(msgspec.Struct, forbid_unknown_fields=True):
    """The body of a request that creates a cluster."""

    name: str
    source: str = msgspec.field(default="", name="from")
    """The cluster whose log is forked; empty for a cluster without history."""
    at: str = ""
    """The last revision or time that the fork contains; empty for the newest revision."""


class ClusterAdministration(Protocol):
    """Creates, describes and deletes clusters. The methods block and may be called on any thread."""

    def all(self) -> list[dict[str, Any]]:
        """Return a description of each cluster, sorted by name."""

    def describe(self, name: str) -> dict[str, Any]:
        """Return the description of a cluster, with its kubeconfig; raises `NotFound`."""

    def create(self, new: NewCluster) -> dict[str, Any]:
        """Create a cluster, and return its description when it is ready; raises `ApiError`."""

    def delete(self, name: str) -> None:
        """Delete a cluster; raises `NotFound` if the cluster does not exist."""


class ClustersPage:
    """A `server.pages.nonresource_pages.Page` for `/clusters` and `/clusters/NAME`."""

    def __init__(self, clusters: ClusterAdministration) -> None:
        """Create a page that administers `clusters`."""
        self._clusters = clusters
        self._workers = Workers(_WORKERS)

    def start(self) -> None:
        """Start the threads on which clusters are created and deleted."""
        self._workers.start()

    def stop(self) -> None:
        """Stop the threads."""
        self._workers.stop()

    async def __call__(self, request: Request) -> Response:
        """Respond to a request; raises `ApiError`, to which the caller responds with a `Status`."""
        match request.method, (request.location.parts or ())[1:]:
            case "GET" | "HEAD", ():
                return await self._answer(200, lambda: {"clusters": self._clusters.all()})
            case "POST", ():
                return await self._answer(201, partial(self._clusters.create, _read(await request.body())))
            case "GET" | "HEAD", (name,):
                return await self._answer(200, partial(self._clusters.describe, name))
            case "DELETE", (name,):
                return await self._answer(200, partial(self._deleted, name))
            case _, () | (_,):
                raise MethodNotAllowed(details=StatusDetails())
        return PAGE_NOT_FOUND

    def _deleted(self, name: str) -> dict[str, Any]:
        self._clusters.delete(name)
        return {"name": name}

    async def _answer(self, code: int, call: Callable[[], dict[str, Any]]) -> Response:
        return Response(code, msgspec.json.encode(await self._workers.run(call)) + b"\n")


def _read(body: bytes) -> NewCluster:
    try:
        return msgspec.json.decode(body, type=NewCluster)
    except msgspec.MsgspecError as error:
        raise BadRequest(f'the body must be {{"name": NAME}}, with "from" and "at" for a fork: {error}') from error
