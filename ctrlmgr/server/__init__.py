"""Serves the Kubernetes API over HTTP, on the only event loop of the process.

A request passes through the following modules in this order. `ctrlmgr.http` accepts the request. `http_application`
authenticates and authorizes the request (`authn`, `authz`), and resolves the URL path (`routes`, `resource_endpoints`).
`resource_handler` starts the engine's operation, which the `event_loop_driver` runs. `presenting` encodes the result in
the media type that the client accepts, and sends the encoded result whole or in chunks. The package `watch` serves a
watch: `watching` sends past events until the watch has caught up; then the `hub` sends each new event to all watchers.
`pages` serves paths that are not resources, such as `/healthz`.
"""

from ctrlmgr.http.http_server import HttpServer
from ctrlmgr.server.backend import Backend
from ctrlmgr.server.http_application import App
from ctrlmgr.server.pages.health import Check, Health, LogProbe
from ctrlmgr.server.pages.nonresource_pages import Pages

__all__ = ["App", "Backend", "Check", "Health", "HttpServer", "LogProbe", "Pages"]
