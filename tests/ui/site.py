"""The UI page for a prepared log: real requests over a real socket, without controllers."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import NamedTuple

from prometheus_client import CollectorRegistry

from ctrlmgr import threads
from ctrlmgr.authentication.user import MASTERS, User
from ctrlmgr.authorization.authorizer import Authorizer
from ctrlmgr.clock import Clock, SystemClock
from ctrlmgr.eventlog import EventLog, open_log
from ctrlmgr.informer import EventWindow
from ctrlmgr.server import App, Backend, Check, Health, Pages
from ctrlmgr.server.authn.known_users_authorizer import KnownUsersAuthorizer
from ctrlmgr.server.authn.review_resources import Reviews
from ctrlmgr.server.authn.token_file import Tokens
from ctrlmgr.server.authn.union_authenticator import Authentication
from ctrlmgr.server.pages.health import PING
from ctrlmgr.ui import Process, Reader, Site
from tests.engine.stage import builtin_kinds
from tests.server.site import TIMEOUT, serving

OURS = ("this server",)
TOKEN = "a-token-for-tests"
ADMIN = User("admin", "admin", (MASTERS,))


class PageServer(NamedTuple):
    """The page's server."""

    url: str
    log: EventLog
    reader: Reader

    @property
    def link(self) -> str:
        """The URL of the page with the token of a user that has all permissions."""
        return f"{self.url}/ui/#token={TOKEN}"


READY = [PING, Check("log", lambda: None)]
LATE = Check("controller/late", lambda: "late is not running")


@contextmanager
def page(
    database: str,
    *,
    migrate: bool = False,
    told: Clock | None = None,
    checks: Sequence[Check] = (*READY, LATE),
    requests: Path | None = None,
    users: Mapping[str, User] | None = None,
    authorizer: Authorizer | None = None,
) -> Iterator[PageServer]:
    """Serve the log at a URL within the block; `told` is the clock that the page uses.

    Audited requests are stored below `requests`. `users` have other tokens than the administrator, and `authorizer`
    decides about the users' requests; without an authorizer, all known users have all permissions.
    """
    clock = SystemClock()
    log = open_log(database, clock=clock, random=Random(1), migrate=migrate)
    access = Authentication([], [Tokens({TOKEN: ADMIN, **(users or {})}, audiences=OURS)], audiences=OURS)
    authorizer = authorizer or KnownUsersAuthorizer()
    kinds = builtin_kinds()
    backend = Backend(
        log, EventWindow(log, clock=clock), kinds, Reviews(access, authorizer), clock=clock, random=Random(2)
    )
    health = [Health("livez", [PING]), Health("readyz", checks)]
    reader = Reader(database)
    told = told or clock
    site = Site(reader, Process(reader, health, clock=told, role="all"), authorizer, clock=told, requests=requests)
    pages = Pages(health, CollectorRegistry(), kinds, backend.workers, mounts={"ui": site})
    app = App(backend, pages, access, authorizer, clock=clock, random=Random(3))
    stop = threading.Event()
    reading = threads.start("page under test", lambda: reader.run(stop))
    try:
        with serving(app) as url:
            yield PageServer(url, log, reader)
    finally:
        stop.set()
        reading.join(TIMEOUT)
        log.close()
