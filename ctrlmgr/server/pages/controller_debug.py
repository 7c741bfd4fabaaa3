"""Serves the debug pages of controllers at `/debug/controllers/NAME/PAGE`, for a controller's name and its aliases.

As for all pages, a client needs rights for the nonResourceURL of a page. The index of paths does not list debug pages.
A worker thread creates a page, because the creation may take long.

Source: kube-controller-manager `cmd/kube-controller-manager/app/controllermanager.go` (`BuildControllers`).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

from ctrlmgr.controllers.descriptor import ControllerDescriptor
from ctrlmgr.manager import Controller
from ctrlmgr.manager.debug_page import Debuggable
from ctrlmgr.server.pages.nonresource_pages import Page
from ctrlmgr.server.presenting.responses import NO_SNIFFING, Response
from ctrlmgr.server.request import Request
from ctrlmgr.server.workers import Workers


def controller_debug_pages(
    descriptors: Iterable[ControllerDescriptor[Any]], controllers: Iterable[Controller], workers: Workers
) -> dict[str, Page]:
    """Return the pages of the running controllers by URL path."""
    running = {each.name: each.reconciler for each in controllers if isinstance(each.reconciler, Debuggable)}
    return {
        f"/debug/controllers/{name}/{page}": partial(_answer, reconciler, page, workers)
        for each in descriptors
        if (reconciler := running.get(each.name)) is not None
        for page in each.debug_pages
        for name in (each.name, *each.aliases)
    }


async def _answer(reconciler: Debuggable, name: str, workers: Workers, request: Request) -> Response:
    media_type, body = await workers.run(lambda: reconciler.debug_page(name, request.query))
    return Response(200, body.encode(), ((b"content-type", media_type.encode()), NO_SNIFFING))
