"""Creates and encodes `Status` objects (meta/v1), the bodies of responses to failed requests and deletions.

Guarantees: the fields of a Status are in Go's order, and empty fields are omitted as in Go. The bytes of a Status equal
those of Go's encoder (compact, HTML-safe, a newline at the end), because tests of clients compare error bodies byte for
byte.
"""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import msgspec

from ctrlmgr.api.resource import Resource
from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.errors import (
    ApiError,
    CtrlmgrError,
    Expired,
    InternalError,
    LogClosed,
    LogUnavailable,
    OutcomeUnknown,
    RequestTimeout,
    ServiceUnavailable,
    StatusCause,
    StatusDetails,
)
from ctrlmgr.golang.go_text import escape_html

_encode = msgspec.json.Encoder().encode


def failure(error: ApiError) -> Unstructured:
    """Return the Status for an error response."""
    metadata = {"continue": error.continue_token} if isinstance(error, Expired) and error.continue_token else {}
    status: Unstructured = {"kind": "Status", "apiVersion": "v1", "metadata": metadata, "status": "Failure"}
    status["message"] = str(error)
    if error.reason:
        status["reason"] = error.reason
    if error.details is not None:
        status["details"] = _details(error.details)
    status["code"] = error.code
    return status


def success(details: StatusDetails | None = None, *, code: int = 0) -> Unstructured:
    """Return the Status for a successful request whose response contains no object; `code` is omitted if it is 0."""
    status: Unstructured = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    if details is not None:
        status["details"] = _details(details)
    if code:
        status["code"] = code
    return status


def deleted(resource: Resource, name: str, uid: str) -> Unstructured:
    """Return the Status for a deleted object."""
    return success(StatusDetails(name=name, group=resource.group, kind=resource.plural, uid=uid))


def encode(status: Unstructured) -> bytes:
    """Encode a Status as Go's JSON encoder does, with HTML characters escaped."""
    return escape_html(_encode(status)) + b"\n"


def _details(details: StatusDetails) -> dict[str, Any]:
    name, group, kind, uid, causes, retry_after = details
    fields: dict[str, Any] = {"name": name, "group": group, "kind": kind, "uid": uid}
    if causes:
        fields["causes"] = [_cause(cause) for cause in causes]
    fields["retryAfterSeconds"] = retry_after
    return {field: value for field, value in fields.items() if value}


def _cause(cause: StatusCause) -> dict[str, str]:
    return {field: value for field, value in cause._asdict().items() if value}


@singledispatch
def api_error(error: CtrlmgrError) -> ApiError:
    """Return the API error that corresponds to an exception.

    If the log raised the exception, the result is an error with the code 503, 504 or 500.
    """
    return InternalError(f"Internal error occurred: {error}")


@api_error.register
def _(error: ApiError) -> ApiError:
    return error


@api_error.register(LogUnavailable)
@api_error.register(LogClosed)
def _(error: CtrlmgrError) -> ApiError:
    return ServiceUnavailable(str(error), details=StatusDetails(retry_after_seconds=1))


@api_error.register
def _(error: OutcomeUnknown) -> ApiError:
    return RequestTimeout(f"Timeout: {error}", details=StatusDetails())
