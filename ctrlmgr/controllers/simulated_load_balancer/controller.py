"""The simulated load balancer: writes `status.loadBalancer.ingress` of Services of type LoadBalancer.

Guarantees: each Service of type LoadBalancer gets one unique address of the pool, in the Service's first IP family. A
Service with a load balancer class is ignored. The controller has only one worker, so no lock is needed.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping
from typing import Any

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import SERVICES, Key
from ctrlmgr.client import EngineClient
from ctrlmgr.controllers.assembly import assemble
from ctrlmgr.controllers.descriptor import ControllerContext
from ctrlmgr.controllers.events.recorder import NORMAL, WARNING, Recorder
from ctrlmgr.controllers.simulated_load_balancer import DESCRIPTOR, Options
from ctrlmgr.informer import Lister
from ctrlmgr.manager import Controller, Result, Watch, own_key
from ctrlmgr.simulation.nodes import free_address

_AGAIN = 30.0
"""The number of seconds until the retry if no address is free for a Service."""


def wants_address(service: Mapping[str, Any]) -> bool:
    """Return whether this controller assigns an address to the Service."""
    spec = service.get("spec") or {}
    return spec.get("type") == "LoadBalancer" and not spec.get("loadBalancerClass")


class LoadBalancer:
    """Reconciles the address of a Service."""

    def __init__(self, services: Lister, ranges: str, recorder: Recorder) -> None:
        """Create a reconciler that assigns addresses of `ranges`.

        The string `ranges` contains one network, or two networks separated by a comma.
        """
        self._services = services
        self._pools = {each.version: each for each in map(ipaddress.ip_network, ranges.split(","))}
        self._recorder = recorder
        self._given: dict[Key, str] = {}

    def on_start(self) -> Iterator[Key]:
        """Mark the addresses that Services have as assigned, and yield the keys of all Services."""
        self._given.clear()
        for service in self._services.list():
            fields = service.to_dict()
            if wants_address(fields) and _addresses(fields):
                self._given[service.key] = _addresses(fields)[0]
            yield service.key

    def reconcile(self, key: Key, client: EngineClient) -> Result | None:
        """Assign an address to the Service, or release the address if the Service no longer needs one."""
        service = self._services.get(key)
        fields = service.to_dict() if service is not None else {}
        if service is None or not wants_address(fields):
            held = self._given.pop(key, None)
            if service is not None and held is not None and held in _addresses(fields):
                self._write(fields, "", client)
            return None
        if _addresses(fields):
            self._given[key] = _addresses(fields)[0]
            return None
        self._recorder.event(service, NORMAL, "EnsuringLoadBalancer", "Ensuring load balancer")
        address = self._given.get(key) or self._free(fields)
        if not address:
            message = "Error syncing load balancer: no address of the simulated pool is free"
            self._recorder.event(service, WARNING, "SyncLoadBalancerFailed", message)
            return Result(requeue_after=_AGAIN)
        self._given[key] = address
        self._write(fields, address, client)
        self._recorder.event(service, NORMAL, "EnsuredLoadBalancer", "Ensured load balancer")
        return None

    def _free(self, fields: Mapping[str, Any]) -> str:
        families = fields["spec"].get("ipFamilies") or ["IPv4"]
        pool = self._pools.get(6 if families[0] == "IPv6" else 4)
        return free_address(pool, self._given.values()) if pool is not None else ""

    def _write(self, fields: dict[str, Any], address: str, client: EngineClient) -> None:
        ingress = {"ingress": [{"ip": address, "ipMode": "VIP"}]} if address else {}
        status = {**(fields.get("status") or {}), "loadBalancer": ingress}
        client.update(Object.from_dict({**fields, "status": status}), "status")


def _addresses(fields: Mapping[str, Any]) -> list[str]:
    ingress = ((fields.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()
    return [each["ip"] for each in ingress if "ip" in each]


def build(context: ControllerContext, options: Options) -> Controller:
    """Build the controller from its context and options."""
    services = context.informers.informer(SERVICES)
    reconciler = LoadBalancer(services.lister, options.simulated_load_balancer_range, context.recorder(DESCRIPTOR))
    return assemble(DESCRIPTOR, context, reconciler, [Watch(services, own_key)])
