"""A client of an API server over HTTP, which reads, writes, lists and watches objects for controllers.

Guarantees:

- If the server refuses a request, the client raises the same error as inside the control plane, with its reason,
  message and causes.
- A write that gets no response raises `OutcomeUnknown`; a failed read raises `ServiceUnavailable`.
- The rate of requests is limited; watches are not limited.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec
import urllib3

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Resource
from ctrlmgr.errors import (
    AlreadyExists,
    ApiError,
    BadRequest,
    Conflict,
    Expired,
    Forbidden,
    InternalError,
    Invalid,
    MethodNotAllowed,
    NamespaceTerminating,
    NotFound,
    OutcomeUnknown,
    RequestTimeout,
    ServiceUnavailable,
    StatusCause,
    StatusDetails,
    TooManyRequests,
    Unauthorized,
    UnsupportedMediaType,
)
from ctrlmgr.framework.remote.throttle import Throttle
from ctrlmgr.recording.capture.cluster_client import Cluster, Served
from ctrlmgr.settings.kubeconfig import Access

_TIMEOUT: Final = urllib3.Timeout(connect=10, read=34)
_REASONS: Final[Mapping[str, type[ApiError]]] = {
    each.reason: each
    for each in (
        AlreadyExists,
        BadRequest,
        Conflict,
        Forbidden,
        InternalError,
        Invalid,
        MethodNotAllowed,
        NotFound,
        RequestTimeout,
        ServiceUnavailable,
        TooManyRequests,
        Unauthorized,
        UnsupportedMediaType,
    )
}
_CODES: Final[Mapping[int, type[ApiError]]] = {
    400: BadRequest,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    405: MethodNotAllowed,
    409: Conflict,
    415: UnsupportedMediaType,
    422: Invalid,
    429: TooManyRequests,
    500: InternalError,
}


class _Cause(msgspec.Struct):
    reason: str = ""
    message: str = ""
    field: str = ""


class _Details(msgspec.Struct):
    name: str = ""
    group: str = ""
    kind: str = ""
    uid: str = ""
    causes: list[_Cause] = []  # msgspec copies the data of the raw value.


class _Status(msgspec.Struct):
    message: str = ""
    reason: str = ""
    details: _Details | None = None


_decode_status = msgspec.json.Decoder(_Status).decode


class Api(Cluster):
    """A client of one API server; thread-safe."""

    def __init__(
        self, access: Access, throttle: Throttle, *, program: str, versions: Mapping[Resource, str] | None = None
    ) -> None:
        """Use the URL and credentials in `access`, and the user agent `program`; no request is sent yet.

        `versions` are the API versions (such as `example.com/v1`) in which resources are read, if the caller needs a
        certain version.
        """
        super().__init__(access, program=program)
        self._throttle = throttle
        self._versions = versions or {}

    def call(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        *,
        query: Mapping[str, str] | None = None,
        media_type: str = "application/json",
    ) -> bytes:
        """Send a request and return the response's body.

        Raises `ApiError` if the server refuses the request, and `OutcomeUnknown` if a write gets no response.
        """
        self._throttle.wait()
        headers = {} if body is None else {"content-type": media_type}
        try:
            return self._read(path, self._send(path, query or {}, headers, _TIMEOUT, method, body))
        except ServiceUnavailable as error:
            if method == "GET" or isinstance(error, _Refused):
                raise
            raise OutcomeUnknown(str(error)) from error

    def object(self, method: str, path: str, body: bytes | None = None, **options: Any) -> Object:
        """Send a request whose response is an object, and return that object."""
        return Object.from_wire(self.call(method, path, body, **options))

    def find(self, resource: Resource) -> Served:
        """Return the URL path of a resource, in its given version or in the preferred version of its group.

        Raises `NotFound` if the resource is not served.
        """
        path = "/api/v1"
        if resource.group and (version := self._versions.get(resource)):
            path = f"/apis/{version}"
        elif resource.group:
            group = msgspec.json.decode(self.call("GET", f"/apis/{resource.group}"))
            path = f"/apis/{group['preferredVersion']['groupVersion']}"
        for each in self._served_by(path, resource.group):
            if each.resource == resource:
                return each
        raise NotFound(f"the server does not serve {resource}")

    def _refusal(self, code: int, body: bytes, what: str) -> ApiError:
        return error_of(code, body, what)


class _Refused(ServiceUnavailable):
    """Raised if the server itself responded that it has changed nothing."""

    reason = "ServiceUnavailable"


def error_of(code: int, body: bytes, what: str) -> ApiError:
    """Return the error for a response.

    If the response has no message, the error's message contains `what`, a description of the request.
    """
    try:
        status = _decode_status(body)
    except msgspec.MsgspecError:
        status = _Status(f"{what}: {body[:200].decode(errors='replace').strip() or code}")
    message = status.message or f"{what}: {code}"
    if code == 410:
        return Expired(0, 0, message)
    found = status.details or _Details()
    causes = tuple(StatusCause(each.reason, each.message, each.field) for each in found.causes)
    details = StatusDetails(found.name, found.group, found.kind, found.uid, causes)
    if any(each.reason == "NamespaceTerminating" for each in causes):
        return NamespaceTerminating(message, details=details)
    kind = _REASONS.get(status.reason) or _CODES.get(code) or ServiceUnavailable
    return (_Refused if kind is ServiceUnavailable else kind)(message, details=details)


def path_of(api_version: str, plural: str, namespace: str, name: str = "", subresource: str = "") -> str:
    """Return the URL path of an object or, without `name`, of all objects of its kind."""
    prefix = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
    place = f"/namespaces/{namespace}" if namespace else ""
    return "/".join(part for part in (f"{prefix}{place}", plural, name, subresource) if part)
