"""Keeps the condition Available of APIServices.

The controller regularly requests the discovery document of each extension server. Guarantees:
- The controller runs in every process that serves the API, leader or not, because each process must reach the servers
  itself.
- An available extension server is checked again every 30 seconds, and when its Service or endpoints change. An
  unavailable extension server is checked again after 5 ms; the delay doubles with each check, up to 30 seconds.
- A check of an extension server ends after 5 seconds at the latest. Several checks run concurrently, so a server that
  hangs does not delay the checks of other servers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from random import Random
from typing import Final

import structlog
from prometheus_client import Gauge

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import ENDPOINT_SLICES, SERVICES, Key
from ctrlmgr.client import Client, EngineClient, InformerState
from ctrlmgr.clock import Clock, format_time_seconds
from ctrlmgr.controllers.apiservices.availability import (
    LOCAL,
    PASSED,
    Availability,
    failing,
    problem_of,
    unmet,
    with_availability,
)
from ctrlmgr.engine.aggregated_groups import API_SERVICES
from ctrlmgr.engine.calls.call import Call, Credentials, Reply
from ctrlmgr.engine.calls.endpoint import Unresolved, resolve_cluster, resolve_endpoint
from ctrlmgr.engine.calls.remote_services import RemoteService, remote_service
from ctrlmgr.errors import Conflict, NotFound
from ctrlmgr.eventlog import EventLog
from ctrlmgr.informer import Change, Informers, Lister
from ctrlmgr.manager import Controller, Result, Watch
from ctrlmgr.manager.controller import own_key
from ctrlmgr.workqueue import ExponentialBackoff

log = structlog.get_logger(__name__)

NAME: Final = "apiservice-availability-controller"
WORKERS: Final = 5
ATTEMPTS: Final = 5
"""The number of requests in one check of a server. Each request chooses its endpoint independently. A check succeeds if
one of its requests succeeds.
"""
TIMEOUT: Final = 5.0
"""The timeout of one request, in seconds."""
RESYNC: Final = 30.0
"""The number of seconds until an available server is checked again."""
_SHORTEST, _LONGEST = 0.005, 30.0
_SERVICE_LABEL: Final = "kubernetes.io/service-name"
_OF_SERVICE: Final = "service"
_USER: Final = {"X-Remote-User": "system:kube-aggregator", "X-Remote-Group": "system:masters"}
"""The user in whose name discovery requests are sent; it may read discovery on every server (`SetAuthProxyHeaders`)."""

UNAVAILABLE: Final = Gauge(
    "aggregator_unavailable_apiservice",
    "Gauge of APIServices which are marked as unavailable broken down by APIService name.",
    ["name"],
)

Calls = Callable[[Sequence[Call]], list[Reply]]


class AvailabilityReconciler:
    """Reconciles the condition Available of one APIService."""

    def __init__(
        self,
        services: Lister,
        slices: Lister,
        state: InformerState,
        call: Calls,
        certificate: Callable[[], bytes],
        *,
        clock: Clock,
        random: Random,
        by_endpoints: bool = True,
    ) -> None:
        """Send discovery requests with `call`, using the client certificate that `certificate` returns."""
        self._services = services
        self._slices = slices
        self._state = state
        self._call = call
        self._certificate = certificate
        self._clock = clock
        self._random = random
        self._by_endpoints = by_endpoints
        self._backoff: ExponentialBackoff[Key] = ExponentialBackoff(_SHORTEST, _LONGEST)

    def reconcile(self, key: Key, client: Client) -> Result | None:
        """Check one APIService, and write its condition Available if the condition has changed."""
        service = self._services.get(key)
        if service is None:
            self._backoff.forget(key)
            with suppress(KeyError):
                UNAVAILABLE.remove(key.name)
            return None
        remote = remote_service(service)
        found = LOCAL if remote is None else self._checked(remote)
        UNAVAILABLE.labels(key.name).set(0 if found.is_true else 1)
        self._write(service, found, client)
        return self._next(key, remote, found)

    def _next(self, key: Key, remote: RemoteService | None, found: Availability) -> Result | None:
        if remote is None:
            return None
        if found.reason == "FailedDiscoveryCheck":
            return Result(self._backoff.when(key))
        self._backoff.forget(key)
        return Result(RESYNC)

    def _checked(self, remote: RemoteService) -> Availability:
        where = Key(remote.namespace, remote.service)
        slices = self._slices.by_index(_OF_SERVICE, str(where))
        lack = unmet(remote, self._state.get(SERVICES, where), slices)
        if lack is not None:
            return lack
        problems = self._problems(remote)
        return PASSED if "" in problems else failing(problems[-1])

    def _problems(self, remote: RemoteService) -> list[str]:
        """Return the result of each discovery request: the problem, or an empty string if the request succeeded."""
        urls: list[str] = []
        for _ in range(ATTEMPTS):
            try:
                urls.append(self._url(remote))
            except Unresolved as problem:
                return [str(problem)]
        credentials = Credentials(_USER, self._certificate())
        calls = [
            Call(
                url,
                b"",
                TIMEOUT,
                remote.ca_bundle,
                credentials=credentials,
                server_name=remote.server_name,
                is_checked=remote.is_checked,
                method="GET",
                is_plain=True,
            )
            for url in urls
        ]
        replies = self._call(calls)
        return [problem_of(url, reply) for url, reply in zip(urls, replies, strict=True)]

    def _url(self, remote: RemoteService) -> str:
        where = remote.namespace, remote.service, remote.port
        if self._by_endpoints:
            found = resolve_endpoint(self._state, *where, self._random)
            if found is None:
                raise Unresolved(f"all endpoints of service {remote.service!r} are on simulated nodes")
        else:
            found = resolve_cluster(self._state, *where)
        host, port = found
        return f"https://{f'[{host}]' if ':' in host else host}:{port}{remote.path}"

    def _write(self, service: Object, found: Availability, client: Client) -> None:
        now = format_time_seconds(self._clock.now())
        changed = with_availability(service, found, now)
        if changed is None:
            return
        log.info("APIService availability changed", apiservice=service.name, reason=found.reason)
        with suppress(Conflict, NotFound):  # The APIService has changed or was deleted; the informer will report it.
            client.update(changed, "status")


def new_availability_controller(
    informers: Informers,
    client: EngineClient,
    event_log: EventLog,
    call: Calls,
    certificate: Callable[[], bytes],
    *,
    clock: Clock,
    random: Random,
    by_endpoints: bool = True,
) -> Controller:
    """Build the controller; the caller must do this before the informers sync."""
    services, slices = informers.informer(API_SERVICES), informers.informer(ENDPOINT_SLICES)
    services.add_index(_OF_SERVICE, _named_service)
    slices.add_index(_OF_SERVICE, _service_of)
    lister = services.lister

    def users_of(names: Iterable[str]) -> list[Key]:
        found = {service.name: None for name in names for service in lister.by_index(_OF_SERVICE, name)}
        return [Key("", name) for name in found]

    def of_slice(change: Change) -> Iterable[Key]:
        return users_of(name for each in (change.old, change.new) if each is not None for name in _service_of(each))

    reconciler = AvailabilityReconciler(
        lister,
        slices.lister,
        InformerState(informers, event_log),
        call,
        certificate,
        clock=clock,
        random=random,
        by_endpoints=by_endpoints,
    )
    return Controller(
        NAME,
        reconciler,
        watches=[
            Watch(services, own_key),
            Watch(informers.informer(SERVICES), lambda change: users_of([str(change.object.key)])),
            Watch(slices, of_slice),
        ],
        client=client,
        log=event_log,
        clock=clock,
        random=random,
        workers=WORKERS,
    )


def _named_service(service: Object) -> Iterable[str]:
    remote = remote_service(service)
    return [] if remote is None else [str(Key(remote.namespace, remote.service))]


def _service_of(found: Object) -> Iterable[str]:
    name = found.labels.get(_SERVICE_LABEL)
    return [str(Key(found.namespace, name))] if name else []
