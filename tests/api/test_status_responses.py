from __future__ import annotations

import pytest

from ctrlmgr.api import status_responses
from ctrlmgr.api.resource import Resource
from ctrlmgr.errors import (
    ApiError,
    CtrlmgrError,
    Expired,
    Invalid,
    LogClosed,
    LogCorrupt,
    LogUnavailable,
    MethodNotAllowed,
    NotFound,
    OutcomeUnknown,
    StatusCause,
    StatusDetails,
    Unauthorized,
    UnknownError,
)


@pytest.mark.parametrize(
    ("error", "wire"),
    [
        (
            NotFound('pods "a" not found', details=StatusDetails(name="a", kind="pods")),
            b'"message":"pods \\"a\\" not found","reason":"NotFound","details":{"name":"a","kind":"pods"},"code":404}',
        ),
        (
            Invalid(
                "no",
                details=StatusDetails(
                    "a", "apps", "Deployment", "u", (StatusCause("R", "m", "f"), StatusCause("S")), 7
                ),
            ),
            b'"message":"no","reason":"Invalid","details":{"name":"a","group":"apps","kind":"Deployment","uid":"u",'
            b'"causes":[{"reason":"R","message":"m","field":"f"},{"reason":"S"}],"retryAfterSeconds":7},"code":422}',
        ),
        (Unauthorized(), b'"message":"Unauthorized","reason":"Unauthorized","code":401}'),
        (
            MethodNotAllowed(details=StatusDetails()),
            b'"message":"the server does not allow this method on the requested resource",'
            b'"reason":"MethodNotAllowed","details":{},"code":405}',
        ),
        (UnknownError("<a> & b"), b'"message":"\\u003ca\\u003e \\u0026 b","code":500}'),
    ],
)
def test_a_refusal_has_the_bytes_of_go(error: ApiError, wire: bytes) -> None:
    head = b'{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",'
    assert status_responses.encode(status_responses.failure(error)) == head + wire + b"\n"


def test_an_expired_continue_token_contains_an_inconsistent_one() -> None:
    error = Expired(3, 7, "too old", continue_token="abc")
    assert status_responses.failure(error)["metadata"] == {"continue": "abc"}
    assert str(Expired(3, 7)) == "too old resource version: 3 (7)"
    assert status_responses.failure(Expired(3, 7))["metadata"] == {}


def test_a_deletion_status_names_the_deleted_object() -> None:
    assert status_responses.encode(status_responses.deleted(Resource("apps", "deployments"), "web", "u-1")) == (
        b'{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success",'
        b'"details":{"name":"web","group":"apps","kind":"deployments","uid":"u-1"}}\n'
    )
    assert status_responses.success(code=201) == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "code": 201,
    }


@pytest.mark.parametrize(
    ("error", "code", "reason"),
    [
        (NotFound("gone"), 404, "NotFound"),
        (LogUnavailable("away"), 503, "ServiceUnavailable"),
        (LogClosed(), 503, "ServiceUnavailable"),
        (OutcomeUnknown(), 504, "Timeout"),
        (LogCorrupt("bad"), 500, "InternalError"),
    ],
)
def test_every_error_becomes_an_api_status(error: CtrlmgrError, code: int, reason: str) -> None:
    told = status_responses.api_error(error)
    assert (told.code, told.reason) == (code, reason)
    assert str(error) in str(told)
