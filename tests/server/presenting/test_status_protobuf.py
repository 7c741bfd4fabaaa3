"""Tests of errors for clients that accept only protobuf: the bytes are those of Kubernetes, and Kubernetes' clients can
read them.
"""

from __future__ import annotations

from typing import Any

import pytest

from ctrlmgr.api import status_responses
from ctrlmgr.errors import ApiError, Expired, NotAcceptable, NotFound, StatusCause, StatusDetails
from ctrlmgr.schema.protobuf.protobuf_decoding import decode
from ctrlmgr.server.presenting.negotiation import PLAIN, PROTOBUF, of_error
from ctrlmgr.server.presenting.status_protobuf import encode_status
from tests.server.site import CONFIG_MAPS, running

TYPES = "only the following media types are accepted: application/json, application/yaml, " + PROTOBUF
CAUSES = (StatusCause("FieldValueInvalid", "too small", "spec.size"), StatusCause(message="é"))
DETAILS = StatusDetails("one", "example.com", "widgets", "u-1", CAUSES, 300)


def test_a_refusal_is_encoded_like_kubernetes() -> None:
    assert encode_status(status_responses.failure(NotAcceptable(TYPES))) == (
        b"k8s\x00\n\x0c\n\x02v1\x12\x06Status\x12\x99\x01\n\x06\n\x00\x12\x00\x1a\x00\x12\x07Failure\x1at"
        + TYPES.encode()
        + b'"\rNotAcceptable0\x96\x03\x1a\x00"\x00'
    )


def without_zeros(value: Any) -> Any:
    """Return a value without zero values, because Go omits zero values."""
    if isinstance(value, dict):
        kept = {name: without_zeros(each) for name, each in value.items()}
        return {name: each for name, each in kept.items() if each not in ("", 0, {})}
    return [without_zeros(each) for each in value] if isinstance(value, list) else value


@pytest.mark.parametrize(
    "error",
    [
        NotAcceptable(TYPES),
        NotFound('widgets.example.com "one" not found', details=DETAILS),
        NotFound("nothing", details=StatusDetails()),
        Expired(1, 2, continue_token="abc"),
    ],
)
def test_a_decoded_status_equals_the_encoded_one(error: ApiError) -> None:
    told = status_responses.failure(error)
    assert without_zeros(decode(encode_status(told))) == without_zeros(told)


@pytest.mark.parametrize(
    ("accept", "in_protobuf"),
    [
        (PROTOBUF, True),
        (f"{PROTOBUF};as=PartialObjectMetadata;v=v1;g=meta.k8s.io,{PROTOBUF}", True),
        (f"{PROTOBUF};as=PartialObjectMetadata;v=v1;g=meta.k8s.io", False),
        ("text/html", False),
        ("", False),
    ],
)
def test_protobuf_status_responses(accept: str, in_protobuf: bool) -> None:
    assert (of_error(accept.encode()) != PLAIN) == in_protobuf


def test_a_client_that_accepts_only_protobuf_gets_protobuf_errors() -> None:
    with running() as site:
        refused = site.ask(f"{CONFIG_MAPS}/none", headers={"Accept": PROTOBUF})
        assert (refused.status, refused.headers["content-type"]) == (406, PROTOBUF)
        assert "NotAcceptable" in refused.body
        either = site.ask(f"{CONFIG_MAPS}/none", headers={"Accept": f"{PROTOBUF},application/json"})
        assert (either.status, either.headers["content-type"]) == (404, "application/json")
