"""Serves paths below `/ui`, which are the files of the page and its data.

| path | answer |
|---|---|
| `/ui/` | the page; `/ui` redirects to it |
| `/ui/NAME` | its scripts, styles and pictures |
| `/ui/api/status`, `queues`, `leaders`, `requests`, `health` | the current state of the process |
| `/ui/api/failures` | the reconciles that fail |
| `/ui/api/timeline`, `events`, `moment` | events over time |
| `/ui/api/kinds`, `objects`, `object`, `around`, `history` | objects at a revision |
| `/ui/api/cluster` | nodes, their pods, and waiting pods |
| `/ui/api/change` | the causes and effects of a change |
| `/ui/api/rollout` | the rollout of a workload |
| `/ui/api/log` | the log in pages of JSON lines |

A user sees only objects that it may `get` or `list` (`visibility`).

Paths within the page are relative, so that the page also works through `kubectl proxy`.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from ctrlmgr.authorization.authorizer import Authorizer
from ctrlmgr.clock import Clock
from ctrlmgr.errors import MethodNotAllowed, NotFound, StatusDetails
from ctrlmgr.http.framing import Header
from ctrlmgr.server.authz.blocking_authorizer import waiting
from ctrlmgr.server.presenting.responses import JSON_TYPE, NO_SNIFFING, Response, text
from ctrlmgr.server.request import Request
from ctrlmgr.ui.assets import SECURITY, Assets
from ctrlmgr.ui.causes_page import Graphs
from ctrlmgr.ui.cluster_page import Cluster
from ctrlmgr.ui.failures_page import Failures
from ctrlmgr.ui.listing import Listing
from ctrlmgr.ui.log_pages import LogPages
from ctrlmgr.ui.object_page import Objects
from ctrlmgr.ui.parameters import Parameters
from ctrlmgr.ui.process_page import Process
from ctrlmgr.ui.reader import Reader
from ctrlmgr.ui.requests_page import Requests
from ctrlmgr.ui.rollouts_page import Rollouts
from ctrlmgr.ui.surroundings import Surroundings
from ctrlmgr.ui.tables_page import Tables
from ctrlmgr.ui.timeline import Timeline
from ctrlmgr.ui.visibility import Visibility

_WORTH_PACKING = 1400
_PACKING_LEVEL = 4
_KEPT: tuple[Header, ...] = ((b"cache-control", b"no-store"), NO_SNIFFING)
_TOLD: tuple[Header, ...] = (JSON_TYPE, *_KEPT)
_LINES: tuple[Header, ...] = ((b"content-type", b"application/x-ndjson"), *_KEPT)

Question = Callable[[Parameters], dict[str, Any] | bytes]
"""A function that returns the fields of a JSON document, or JSON lines."""


class Site:
    """A `server.pages.nonresource_pages.Page` for all paths below `/ui`."""

    def __init__(
        self,
        reader: Reader,
        process: Process,
        authorizer: Authorizer,
        *,
        clock: Clock,
        requests: Path | None = None,
    ) -> None:
        """Create a page that shows the log of `reader`, the state of `process`, and stored `requests`.

        `authorizer` decides which objects each user may see.
        """
        self._authorizer = authorizer
        timeline, tables = Timeline(reader, clock=clock), Tables(reader, clock=clock)
        objects, graphs = Objects(reader), Graphs(reader)
        self._reader = reader
        self._assets = Assets()
        self._questions: dict[str, Question] = {
            "status": process.status,
            "queues": process.queues,
            "leaders": process.leaders,
            "requests": Requests(requests).newest,
            "health": process.health,
            "failures": Failures(reader).failures,
            "timeline": timeline.picture,
            "events": Listing(reader).events,
            "moment": timeline.moment,
            "kinds": tables.kinds,
            "objects": tables.objects,
            "object": objects.object,
            "around": Surroundings(reader, clock=clock).around,
            "history": objects.history,
            "cluster": Cluster(reader).cluster,
            "change": graphs.change,
            "rollout": Rollouts(reader).rollout,
            "log": LogPages(reader).page,
        }

    async def __call__(self, request: Request) -> Response:
        """Respond to a request; raises errors, to which the caller responds with a `Status`."""
        parts = request.location.parts or ()
        if parts[1:2] == ("api",):
            return await self._data(request, "/".join(parts[2:]))
        if request.method not in ("GET", "HEAD"):
            return text(405, "Method Not Allowed\n", (b"allow", b"GET, HEAD"))
        if request.location.path == "/ui":
            return Response(308, b"", ((b"location", b"ui/"), *SECURITY))
        return self._assets.answer(request, "/".join(parts[1:]))

    async def _data(self, request: Request, name: str) -> Response:
        question = self._questions.get(name)
        if question is None:
            raise NotFound(f'the page has no data with the name "{name}"', details=StatusDetails())
        if request.method not in ("GET", "HEAD"):
            raise MethodNotAllowed(details=StatusDetails())
        visibility = Visibility(request.user, waiting(self._authorizer))
        parameters, packs = Parameters(request.query, visibility), request.accepts_gzip
        return await self._reader.work(lambda: _answer(question, parameters, packs=packs))


def _answer(question: Question, parameters: Parameters, *, packs: bool) -> Response:
    answer = question(parameters)
    body, headers = (answer, _LINES) if isinstance(answer, bytes) else (msgspec.json.encode(answer), _TOLD)
    if packs and len(body) > _WORTH_PACKING:
        packed = gzip.compress(body, _PACKING_LEVEL, mtime=0)
        return Response(200, packed, (*headers, (b"content-encoding", b"gzip")))
    return Response(200, body, headers)
