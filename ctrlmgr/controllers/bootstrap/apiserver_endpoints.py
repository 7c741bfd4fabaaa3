"""Builds and writes the Endpoints and EndpointSlices of the `kubernetes` Service.

Guarantees:
- The Endpoints contain the addresses of the servers. If the Endpoints have one subset, the subset's ports are kept
  until the next reset, even if a client changed these ports. If the Endpoints have another number of subsets, the
  Endpoints are rebuilt.
- The EndpointSlice has the same addresses and ports as the Endpoints. If the Endpoints and the EndpointSlice are
  correct, nothing is written.
- The Endpoints have only one subset, because tools read only one. As in Kubernetes, servers at different addresses must
  use the same port; if their ports differ, the lowest port is published. Several servers at one address, which
  Kubernetes does not support, have one subset and one EndpointSlice per port.

Source: Kubernetes' `pkg/controlplane/reconcilers/{lease,instancecount,endpointsadapter}.go`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

import structlog

from ctrlmgr.api.core import IPV4, IPV6, ip_family
from ctrlmgr.api.discovery import MANAGED_BY, SERVICE_NAME, SKIP_MIRROR
from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import ENDPOINT_SLICES, ENDPOINTS, Key
from ctrlmgr.client import Client
from ctrlmgr.controllers.bootstrap.leases import Address
from ctrlmgr.controllers.bootstrap.service import KEY, PORT_NAME
from ctrlmgr.errors import AlreadyExists, Conflict, NotFound
from ctrlmgr.eventlog import EventLog
from ctrlmgr.informer import Lister

log = structlog.get_logger(__name__)

ATTEMPTS: Final = 5
"""The maximum number of attempts for a write that conflicts with another process."""

Fields = dict[str, Any]


def addresses_of(endpoints: Object | None) -> list[str]:
    """Return the addresses in Endpoints that have exactly one subset.

    If there is another number of subsets, return no addresses.
    """
    subsets = _subsets(endpoints)
    return [each["ip"] for each in subsets[0].get("addresses") or ()] if len(subsets) == 1 else []


def _subsets(endpoints: Object | None) -> list[Fields]:
    return (endpoints.to_dict().get("subsets") or []) if endpoints is not None else []


def desired_endpoints(current: Object | None, servers: Collection[Address], *, reset_ports: bool) -> Object | None:
    """Return the Endpoints to write, at the revision of `current`; None if no write is needed."""
    fields: Fields = current.to_dict() if current is not None else _head("Endpoints", "v1")
    before = fields.get("subsets") or []
    subsets = desired_subsets(before, servers, reset_ports=reset_ports)
    labels = fields["metadata"].get("labels") or {}
    if current is not None and subsets == before and labels.get(SKIP_MIRROR) == "true":
        return None
    fields["metadata"]["labels"] = {**labels, SKIP_MIRROR: "true"}
    return Object.from_dict({**fields, "subsets": subsets})


def desired_subsets(before: Sequence[Fields], servers: Collection[Address], *, reset_ports: bool) -> list[Fields]:
    """Return the desired subsets of the Endpoints, given the current subsets."""
    ips = {server.ip for server in servers}
    if len(ips) < len(set(servers)):
        return _by_port(servers)
    if not ips:
        return []
    ports = [_port(min(server.port for server in servers))]
    if len(before) != 1:
        return [{"addresses": _addresses(ips), "ports": ports}]
    subset = dict(before[0])
    if sorted(each["ip"] for each in subset.get("addresses") or ()) != sorted(ips):
        subset["addresses"] = _addresses(ips)
    return [{**subset, "ports": ports}] if reset_ports else [subset]


def _by_port(servers: Iterable[Address]) -> list[Fields]:
    by_port: dict[int, set[str]] = {}
    for server in servers:
        by_port.setdefault(server.port, set()).add(server.ip)
    return [{"addresses": _addresses(ips), "ports": [_port(port)]} for port, ips in sorted(by_port.items())]


def _addresses(ips: Iterable[str]) -> list[Fields]:
    return [{"ip": ip} for ip in sorted(ips)]


def _port(port: int) -> Fields:
    return {"name": PORT_NAME, "port": port, "protocol": "TCP"}


def _head(kind: str, api_version: str, name: str = KEY.name) -> Fields:
    return {"kind": kind, "apiVersion": api_version, "metadata": {"name": name, "namespace": KEY.namespace}}


def desired_slices(endpoints: Object) -> list[Fields]:
    """Return the EndpointSlices for `endpoints`; the first EndpointSlice has the name of the Service."""
    subsets = _subsets(endpoints)
    if len(subsets) < 2:
        return [_slice(KEY.name, subsets[0] if subsets else {})]
    first, *rest = subsets
    return [_slice(KEY.name, first), *(_slice(f"{KEY.name}-{each['ports'][0]['port']}", each) for each in rest)]


def _slice(name: str, subset: Mapping[str, Any]) -> Fields:
    """Return the EndpointSlice for a subset of Endpoints.

    The subset's addresses must have the same IP family (`endpointSliceFromEndpoints`).
    """
    ready, not_ready = subset.get("addresses") or [], subset.get("notReadyAddresses") or []
    families = {ip_family(each["ip"]) for each in (*ready, *not_ready)}
    family = IPV6 if families == {IPV6} else IPV4
    endpoints = [_endpoint(each, ready=True) for each in ready if ip_family(each["ip"]) == family]
    endpoints += [_endpoint(each, ready=False) for each in not_ready if ip_family(each["ip"]) == family]
    ports = [
        {"name": each.get("name", ""), "port": each["port"], "protocol": each["protocol"]}
        for each in subset.get("ports") or ()
    ]
    fields = _head("EndpointSlice", "discovery.k8s.io/v1", name)
    fields["metadata"]["labels"] = {SERVICE_NAME: KEY.name}
    return {**fields, "addressType": family, "endpoints": endpoints, "ports": ports}


def _endpoint(address: Mapping[str, Any], *, ready: bool) -> Fields:
    kept = {field: address[field] for field in ("targetRef", "nodeName") if field in address}
    return {"addresses": [address["ip"]], "conditions": {"ready": ready}, **kept}


def _is_right(current: Fields, desired: Fields) -> bool:
    same = all((current.get(field) or []) == desired[field] for field in ("endpoints", "ports"))
    return same and current["metadata"].get("labels") == desired["metadata"]["labels"]


class Publisher:
    """Writes the servers' Endpoints and EndpointSlices.

    The current Endpoints and EndpointSlices are read from the log, because a cache may be outdated.
    """

    def __init__(self, event_log: EventLog, slices: Lister) -> None:
        """Find outdated EndpointSlices in the lister `slices`."""
        self._log = event_log
        self._slices = slices

    @property
    def published(self) -> Object | None:
        """The current Endpoints; None if the object does not exist."""
        return self._log.get(ENDPOINTS, KEY)

    def publish(self, servers: Collection[Address], client: Client, *, reset_ports: bool) -> None:
        """Write Endpoints and EndpointSlices for `servers`; raises the errors of `client` if a write fails.

        Several processes publish at the same time, so a conflicting write is retried.
        """
        for attempt in range(1, ATTEMPTS + 1):
            try:
                self._publish(servers, client, reset_ports=reset_ports)
            except (AlreadyExists, Conflict):
                if attempt == ATTEMPTS:
                    raise
            else:
                return

    def _publish(self, servers: Collection[Address], client: Client, *, reset_ports: bool) -> None:
        current = self.published
        desired = desired_endpoints(current, servers, reset_ports=reset_ports)
        if desired is not None:
            log.info("publishing server addresses", servers=sorted(each.name for each in servers))
            current = client.create(desired) if current is None else client.update(desired)
        assert current is not None  # The Endpoints existed or were just created.
        slices = {each["metadata"]["name"]: each for each in desired_slices(current)}
        for each in slices.values():
            self._sync_slice(each, client)
        for slice_ in self._slices.list(KEY.namespace, {SERVICE_NAME: KEY.name}):
            if slice_.name not in slices and _is_ours(slice_):
                _delete(slice_, client)

    def _sync_slice(self, desired: Fields, client: Client) -> None:
        current = self._log.get(ENDPOINT_SLICES, Key(KEY.namespace, desired["metadata"]["name"]))
        if current is not None and current.to_dict().get("addressType") != desired["addressType"]:
            _delete(current, client)
            current = None
        if current is None:
            client.create(Object.from_dict(desired))
        elif not _is_right(current.to_dict(), desired):
            versions = {"uid": current.uid, "resourceVersion": str(current.revision)}
            client.update(Object.from_dict({**desired, "metadata": {**desired["metadata"], **versions}}))


def _is_ours(slice_: Object) -> bool:
    """Return whether this controller created a slice in order to publish an additional port."""
    prefix, _, port = slice_.name.rpartition("-")
    return prefix == KEY.name and port.isdecimal() and MANAGED_BY not in slice_.labels


def _delete(slice_: Object, client: Client) -> None:
    try:
        client.delete(slice_)
    except NotFound:
        log.debug("endpoint slice already deleted", name=slice_.name)
