"""The Kubernetes API over HTTP, on the one event loop of the process. asyncio lives here and nowhere else.

In the order a request travels: `http` accepts it, `app` asks who may (`access`) and finds what it is about (`routes`,
`endpoints`); `api` has the `driver` run what the engine makes of it, and shows the result (`presentation`) as it was
asked for (`negotiation`), in one piece or many (`sending`). A watch goes on from there: `watching` until it has caught
up, then in the `hub`, which tells all watchers at once. What is no resource is among the `pages`.
"""

from ctrlmgr.server.app import App
from ctrlmgr.server.backend import Backend
from ctrlmgr.server.http.server import HttpServer
from ctrlmgr.server.pages.health import Check, Health, LogProbe
from ctrlmgr.server.pages.pages import Pages

__all__ = ["App", "Backend", "Check", "Health", "HttpServer", "LogProbe", "Pages"]
