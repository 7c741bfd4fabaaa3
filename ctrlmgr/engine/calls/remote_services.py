"""Finds the servers that APIServices name for versions of API groups.

Guarantees: an APIService without a Service is served by this server, so such an APIService names no remote server.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec

from ctrlmgr.api.object import Object


class RemoteService(NamedTuple):
    """The server for one version of an API group."""

    name: str
    """The name of the APIService."""
    group: str
    version: str
    group_priority: int
    version_priority: int
    namespace: str
    """The namespace of the server's Service."""
    service: str
    """The name of the server's Service."""
    port: int
    ca_bundle: bytes
    """PEM certificates of the authorities for the server's certificate; if empty, the authorities that the system
    trusts.
    """
    is_checked: bool
    """Whether the server's certificate is verified."""
    is_available: bool
    """Whether the condition Available of the APIService is true."""

    @property
    def server_name(self) -> str:
        """The name that the server's certificate must have."""
        return f"{self.service}.{self.namespace}.svc"

    @property
    def where(self) -> tuple[str, str, int]:
        """The namespace, the name and the port of the server's Service."""
        return self.namespace, self.service, self.port

    @property
    def path(self) -> str:
        """The URL path of the version of the API group."""
        return f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"


class _Reference(msgspec.Struct):
    name: str = ""
    namespace: str = ""
    port: int | None = None


class _Spec(msgspec.Struct, rename="camel"):
    version: str = ""
    group: str = ""
    group_priority_minimum: int = 0
    version_priority: int = 0
    service: _Reference | None = None
    ca_bundle: str | None = None
    insecure_skip_tls_verify: bool = msgspec.field(default=False, name="insecureSkipTLSVerify")


class _Condition(msgspec.Struct):
    type: str = ""
    status: str = ""


class _Status(msgspec.Struct):
    conditions: list[_Condition] | None = None


class _Service(msgspec.Struct):
    spec: _Spec
    status: _Status | None = None


_decode = msgspec.json.Decoder(_Service).decode
_PORT = 443


def remote_service(service: Object) -> RemoteService | None:
    """Return the remote server that an APIService names; None if the APIService has no Service."""
    found = _decode(service.body)
    spec, reference = found.spec, found.spec.service
    if reference is None:
        return None
    conditions = (found.status.conditions if found.status is not None else None) or ()
    return RemoteService(
        service.name,
        spec.group,
        spec.version,
        spec.group_priority_minimum,
        spec.version_priority,
        reference.namespace,
        reference.name,
        _PORT if reference.port is None else reference.port,
        base64.b64decode(spec.ca_bundle or ""),
        not spec.insecure_skip_tls_verify,
        any((each.type, each.status) == ("Available", "True") for each in conditions),
    )


def remote_services(services: Iterable[Object]) -> Mapping[tuple[str, str], RemoteService]:
    """Return the servers that APIServices name, by group and version."""
    found = (remote_service(each) for each in services)
    return {(each.group, each.version): each for each in found if each is not None}
