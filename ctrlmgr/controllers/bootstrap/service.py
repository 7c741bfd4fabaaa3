"""Keeps the Service `kubernetes` in `default`, through which pods reach the API.

Guarantees: the Service is created if it is missing. The Service is single-stack, has the first address of the primary
range, and has a port 443 named https whose target is the secure port. The Service's type and ports are corrected once,
when the process starts; later changes by clients stay until the next start. Other fields of the Service are never
corrected.

Source: Kubernetes' `pkg/controlplane/controller/kubernetesservice`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import structlog

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import SERVICES, Key
from ctrlmgr.client import Client
from ctrlmgr.errors import AlreadyExists, Invalid
from ctrlmgr.eventlog import EventLog

log = structlog.get_logger(__name__)

KEY: Final = Key("default", "kubernetes")
PORT: Final = 443
PORT_NAME: Final = "https"

_LABELS: Final = {"component": "apiserver", "provider": "kubernetes"}
_PORT_FIELDS: Final = ("name", "protocol", "appProtocol", "port", "targetPort", "nodePort")


class ServiceSpec(NamedTuple):
    """The fields of the Service `kubernetes` as it should be."""

    cluster_ip: str
    secure_port: int
    """The secure port of the API, which is the target port of the Service."""
    node_port: int = 0
    """The node port of the Service. If the node port is 0, the Service has no node port and its type is ClusterIP."""

    @property
    def type(self) -> str:
        """The Service's type."""
        return "NodePort" if self.node_port else "ClusterIP"

    @property
    def ports(self) -> list[dict[str, Any]]:
        """The Service's ports."""
        port = {"name": PORT_NAME, "protocol": "TCP", "port": PORT, "targetPort": self.secure_port}
        return [{**port, "nodePort": self.node_port} if self.node_port else port]


def new_service(spec: ServiceSpec) -> Object:
    """Return the Service `kubernetes` to create."""
    fields = {
        "kind": "Service",
        "apiVersion": "v1",
        "metadata": {"name": KEY.name, "namespace": KEY.namespace, "labels": _LABELS},
        "spec": {
            "ports": spec.ports,
            "clusterIP": spec.cluster_ip,
            "type": spec.type,
            "sessionAffinity": "None",
            "ipFamilyPolicy": "SingleStack",
        },
    }
    return Object.from_dict(fields)


def reset_service(current: Object, spec: ServiceSpec) -> Object | None:
    """Return the Service with its type and ports corrected; None if both are correct already."""
    fields = current.to_dict()
    there = fields["spec"]
    if there.get("type") == spec.type and list(map(_compared, there.get("ports") or [])) == list(
        map(_compared, spec.ports)
    ):
        return None
    return Object.from_dict({**fields, "spec": {**there, "type": spec.type, "ports": spec.ports}})


def _compared(port: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(port.get(field) or None for field in _PORT_FIELDS)


class KubernetesService:
    """Keeps the Service `kubernetes`; reads the current state from the log, because a cache may be outdated."""

    def __init__(self, event_log: EventLog, spec: ServiceSpec) -> None:
        """Create an instance that keeps the Service with the fields of `spec`."""
        self._log = event_log
        self._spec = spec

    def sync(self, client: Client, *, reset: bool) -> None:
        """Create the Service if it is missing. If `reset` is set, also correct the Service's type and ports."""
        current = self._log.get(SERVICES, KEY)
        if current is None:
            self._create(client)
        elif reset and (desired := reset_service(current, self._spec)) is not None:
            log.warning("resetting type and ports", service=str(KEY), type=self._spec.type)
            client.update(desired)

    def _create(self, client: Client) -> None:
        """Create the Service.

        If the cluster IP is allocated already, the error is ignored, because another process has created the Service.
        """
        try:
            client.create(new_service(self._spec))
        except (AlreadyExists, Invalid):
            if self._log.get(SERVICES, KEY) is None:
                raise
