"""Assembles the bootstrap controller: its tasks, their periods, and the watches that run tasks before their period."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from random import Random
from typing import Final, NamedTuple

from ctrlmgr.api.discovery import SERVICE_NAME
from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import ENDPOINT_SLICES, ENDPOINTS, NAMESPACES, SERVICES, Key
from ctrlmgr.client import EngineClient, LogClient
from ctrlmgr.clock import Clock
from ctrlmgr.controllers.bootstrap import cidr as bootstrap_cidr
from ctrlmgr.controllers.bootstrap import controller as bootstrap
from ctrlmgr.controllers.bootstrap import service as bootstrap_service
from ctrlmgr.controllers.bootstrap import system_namespaces as bootstrap_namespaces
from ctrlmgr.controllers.bootstrap.apiserver_endpoints import Publisher
from ctrlmgr.controllers.bootstrap.cidr import DefaultServiceCIDR
from ctrlmgr.controllers.bootstrap.controller import Bootstrap, BootstrapReconciler, Presence
from ctrlmgr.controllers.bootstrap.leases import MASTER_LEASES, Address, MasterLeases
from ctrlmgr.controllers.bootstrap.reconcilers import (
    LEASE,
    MASTER_COUNT,
    EndpointReconciler,
    LeaseReconciler,
    MasterCountReconciler,
    NoReconciler,
)
from ctrlmgr.controllers.bootstrap.service import KubernetesService, ServiceSpec
from ctrlmgr.controllers.bootstrap.system_namespaces import SYSTEM_NAMESPACES, SystemNamespaces
from ctrlmgr.controllers.events.recorder import EventBroadcaster
from ctrlmgr.controllers.repair import controller as repair
from ctrlmgr.controllers.repair.controller import (
    ADDRESSES_NAME,
    PORTS_NAME,
    cluster_ip_repair,
    new_repair_controller,
    node_port_repair,
)
from ctrlmgr.errors import SettingsError
from ctrlmgr.eventlog import EventLog, EventType
from ctrlmgr.informer import Change, Informers
from ctrlmgr.kinds.allocators.service_cidrs import SERVICE_CIDRS
from ctrlmgr.kinds.allocators.service_ranges import Ranges
from ctrlmgr.manager import Controller, Periodic, Watch
from ctrlmgr.settings import ServiceSettings

_AFTER_A_CHANGE: Final = 1.0
"""The number of seconds after which a client's deletion or change of an object is corrected.

Kubernetes corrects deletions and changes at its next periodic check, which is up to 10 s or 60 s later.
"""

Keys = Callable[[Change], Iterable[Key]]


class Parts(NamedTuple):
    """The dependencies of the bootstrap controller."""

    informers: Informers
    event_log: EventLog
    client: EngineClient
    internal: LogClient
    """A client that writes node port claims and server leases directly to the log."""
    events: EngineClient
    """Writes Events."""
    broadcaster: EventBroadcaster
    clock: Clock
    random: Random


def new_bootstrap(
    parts: Parts,
    settings: ServiceSettings,
    ranges: Ranges,
    *,
    address: str | None,
    port: int,
    ready: Callable[[], bool],
) -> Bootstrap:
    """Assemble the bootstrap controller, before the informers sync; raises `SettingsError` if the settings are invalid.

    `address` is the result of `endpoint_address`; if it is None, no address is published. `port` is the port of the
    API. `ready` returns whether the process is ready, according to all checks, including that of this controller.
    """
    reconciler = _reconciler(parts, settings, ranges, address=address, port=port, ready=ready)
    dependencies = (parts.event_log, ranges, parts.broadcaster, parts.events)
    addresses, ports = cluster_ip_repair(*dependencies), node_port_repair(*dependencies)
    controller = Controller(
        bootstrap.CONTROLLER_NAME,
        reconciler,
        watches=_watches(parts.informers),
        client=parts.client,
        log=parts.event_log,
        clock=parts.clock,
        random=parts.random,
        max_retries=5,  # After five retries, the next periodic check retries.
    )
    event_log, clock, random = parts.event_log, parts.clock, parts.random
    repairing = (
        new_repair_controller(ADDRESSES_NAME, addresses, parts.client, event_log, clock=clock, random=random),
        new_repair_controller(PORTS_NAME, ports, parts.internal, event_log, clock=clock, random=random),
    )
    periodic = _periodic(controller)
    # The preparation has just run both repairs.
    for key, each in zip((addresses.key, ports.key), repairing, strict=True):
        periodic.add(f"repair {key}", repair.INTERVAL, each.queue, key, at_start=False)
    return Bootstrap(
        reconciler,
        (partial(addresses.run, parts.client), partial(ports.run, parts.internal)),
        periodic,
        (controller, *repairing),
        parts.client,
        clock=parts.clock,
    )


def _reconciler(
    parts: Parts,
    settings: ServiceSettings,
    ranges: Ranges,
    *,
    address: str | None,
    port: int,
    ready: Callable[[], bool],
) -> BootstrapReconciler:
    informers = parts.informers
    node_port = settings.kubernetes_service_node_port
    if node_port and node_port not in ranges.ports:
        raise SettingsError(
            f"service.kubernetes_service_node_port is {node_port}; it must be within service.node_port_range, "
            f"{ranges.ports}"
        )
    spec = ServiceSpec(ranges.addresses[0][0], port, node_port)
    own = Address(address, port) if address is not None else None
    recorder = parts.broadcaster.recorder(bootstrap_cidr.COMPONENT, parts.events)
    cidrs = [str(each) for each in ranges.addresses]
    return BootstrapReconciler(
        SystemNamespaces(informers.informer(NAMESPACES).lister),
        DefaultServiceCIDR(informers.informer(SERVICE_CIDRS).lister, cidrs, recorder, clock=parts.clock),
        Presence(KubernetesService(parts.event_log, spec), _endpoints(parts, settings, own), ready),
    )


def _endpoints(parts: Parts, settings: ServiceSettings, own: Address | None) -> EndpointReconciler:
    informers = parts.informers
    publisher = Publisher(parts.event_log, informers.informer(ENDPOINT_SLICES).lister)
    if own is not None and settings.endpoint_reconciler_type == LEASE:
        leases = MasterLeases(own, informers.informer(MASTER_LEASES), parts.event_log, clock=parts.clock)
        return LeaseReconciler(own, leases, publisher, parts.internal)
    if own is not None and settings.endpoint_reconciler_type == MASTER_COUNT:
        return MasterCountReconciler(own, settings.apiserver_count, publisher)
    return NoReconciler()


def _periodic(controller: Controller) -> Periodic:
    periodic = Periodic()
    periodic.add("system namespaces", bootstrap_namespaces.INTERVAL, controller.queue, bootstrap.NAMESPACES)
    periodic.add("default ServiceCIDR", bootstrap_cidr.INTERVAL, controller.queue, bootstrap.SERVICE_CIDR)
    periodic.add("kubernetes service", bootstrap.INTERVAL, controller.queue, bootstrap.SERVICE)
    return periodic


def _watches(informers: Informers) -> list[Watch]:
    """Return the watches that trigger tasks of the bootstrap controller.

    The creation or deletion of a lease triggers the task immediately; other changes trigger it after a second.
    """
    namespaces = _gone([Key("", name) for name in SYSTEM_NAMESPACES], bootstrap.NAMESPACES)
    cidr = _gone([Key("", bootstrap_cidr.NAME)], bootstrap.SERVICE_CIDR)
    service = _gone([bootstrap_service.KEY], bootstrap.SERVICE)
    later = [
        (NAMESPACES, namespaces),
        (SERVICE_CIDRS, cidr),
        (SERVICES, service),
        (ENDPOINTS, _changed),
        (ENDPOINT_SLICES, _changed),
    ]
    watches = [Watch(informers.informer(resource), keys, _AFTER_A_CHANGE) for resource, keys in later]
    return [*watches, Watch(informers.informer(MASTER_LEASES), _came_or_went)]


def _gone(names: Iterable[Key], task: Key) -> Keys:
    """Return a function that maps the deletion of one of the named objects to the key `task`."""
    desired = frozenset(names)

    def keys(change: Change) -> Iterable[Key]:
        is_one = change.type is EventType.DELETED and change.old is not None and change.old.key in desired
        return (task,) if is_one else ()

    return keys


def _changed(change: Change) -> Iterable[Key]:
    """Return the key of the Service if its Endpoints or EndpointSlices were deleted or changed.

    The function ignores creations, because only this controller creates Endpoints and EndpointSlices of this Service.
    """
    return (bootstrap.SERVICE,) if change.old is not None and _is_published(change.old) else ()


def _is_published(obj: Object) -> bool:
    namespace, name = bootstrap_service.KEY
    return obj.namespace == namespace and name in (obj.name, obj.labels.get(SERVICE_NAME))


def _came_or_went(change: Change) -> Iterable[Key]:
    return () if change.type is EventType.MODIFIED else (bootstrap.SERVICE,)
