"""Tests of content negotiation: which representation an Accept header selects, and which Content-Types are valid."""

from __future__ import annotations

import pytest

from ctrlmgr.errors import NotAcceptable, UnsupportedMediaType
from ctrlmgr.server.presenting.negotiation import (
    JSON,
    PLAIN,
    PROTOBUF,
    YAML,
    Accepts,
    Form,
    Representation,
    body_type,
    is_pretty,
    patch_type,
)

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
OLD_TABLE = "application/json;as=Table;v=v1beta1;g=meta.k8s.io"
PARTIAL = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        pytest.param("", PLAIN, id="no header"),
        pytest.param("*/*", PLAIN, id="anything"),
        pytest.param("application/json", PLAIN, id="JSON"),
        pytest.param("application/xml, application/json;q=0.5", PLAIN, id="the better one is not there"),
        pytest.param(f"{PROTOBUF},application/json", PLAIN, id="JSON for who would rather have protobuf"),
        pytest.param(f"{PROTOBUF}, */*", PLAIN, id="anything but protobuf"),
        pytest.param("application/yaml", Representation(yaml=True), id="YAML"),
        pytest.param("application/json;q=0.1,application/yaml", Representation(yaml=True), id="by quality"),
        pytest.param("*/*,application/yaml", Representation(yaml=True), id="stars come last"),
        pytest.param("application/json;pretty=1", Representation(pretty=True), id="pretty"),
        pytest.param("application/json;stream=watch", PLAIN, id="a stream"),
        pytest.param(TABLE, Representation(Form("Table", "v1")), id="a table"),
        pytest.param(f"{OLD_TABLE},application/json", Representation(Form("Table", "v1beta1")), id="an old table"),
        pytest.param(f"{TABLE},{OLD_TABLE},application/json", Representation(Form("Table", "v1")), id="kubectl"),
        pytest.param("application/json;as=Nonsense;v=v1;g=meta.k8s.io,*/*", PLAIN, id="nonsense, or anything"),
        pytest.param(PARTIAL, Representation(Form("PartialObjectMetadata", "v1")), id="metadata"),
    ],
)
def test_the_best_supported_type_is_chosen(accept: str, expected: Representation) -> None:
    assert Accepts().negotiate(accept.encode()) == expected


ROUTER = "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, "
ROUTER += "application/vnd.kubernetes.protobuf"
HANDLER = "only the following media types are accepted: application/json, application/yaml"


@pytest.mark.parametrize(
    ("accept", "message"),
    [
        ("application/xml", ROUTER),
        ("text/html", ROUTER),
        ("application/*", ROUTER),
        ("application/json;as=Nonsense;v=v1;g=meta.k8s.io", f"{HANDLER}, application/vnd.kubernetes.protobuf"),
        ("application/json;as=Table;v=v2;g=meta.k8s.io", f"{HANDLER}, application/vnd.kubernetes.protobuf"),
        ("application/json;as=Table;v=v1;g=other", f"{HANDLER}, application/vnd.kubernetes.protobuf"),
        ("application/json;stream=other", f"{HANDLER}, application/vnd.kubernetes.protobuf"),
        (PROTOBUF, HANDLER),
    ],
)
def test_unsupported_types_are_refused(accept: str, message: str) -> None:
    with pytest.raises(NotAcceptable) as refused:
        Accepts().negotiate(accept.encode())
    assert str(refused.value) == message


def test_a_list_can_be_streamed() -> None:
    with pytest.raises(
        NotAcceptable, match=r"application/json;stream=watch, application/vnd\.kubernetes\.protobuf;stream"
    ):
        Accepts(lists=True).negotiate(b"text/plain")


def test_kinds_without_columns_are_never_a_table() -> None:
    with pytest.raises(NotAcceptable):
        Accepts(transforms=False).negotiate(TABLE.encode())
    assert Accepts(transforms=False).negotiate(f"{TABLE},application/json".encode()) == PLAIN


@pytest.mark.parametrize(
    ("content_type", "expected"),
    [
        ("", JSON),
        ("application/json", JSON),
        ("Application/JSON; charset=utf-8", JSON),
        ("application/yaml", YAML),
        (PROTOBUF, PROTOBUF),
    ],
)
def test_the_type_of_a_body_is_read(content_type: str, expected: str) -> None:
    assert body_type(content_type.encode()) == expected


@pytest.mark.parametrize("content_type", ["text/plain", "application/merge-patch+json", "application/cbor", ";"])
def test_other_bodies_are_refused(content_type: str) -> None:
    with pytest.raises(UnsupportedMediaType, match="accepted media types include: application/json, application/yaml"):
        body_type(content_type.encode())


def test_the_type_of_a_patch_is_read() -> None:
    assert patch_type(b"application/apply-patch+yaml; charset=utf-8") == "application/apply-patch+yaml"


@pytest.mark.parametrize("content_type", ["", "application/json", "text/plain"])
def test_other_patches_are_refused(content_type: str) -> None:
    with pytest.raises(UnsupportedMediaType, match=r"^415: Unsupported Media Type$"):
        patch_type(content_type.encode())


@pytest.mark.parametrize(
    ("query", "agent", "expected"),
    [
        ({}, "kubectl/v1.36", False),
        ({}, "curl/8", True),
        ({}, "Mozilla/5.0 (X11)", True),
        ({"pretty": ["true"]}, "kubectl", True),
        ({"pretty": ["0"]}, "curl/8", False),
        ({"pretty": [""]}, "curl/8", True),
    ],
)
def test_browsers_get_indented_responses(query: dict[str, list[str]], agent: str, expected: bool) -> None:
    assert is_pretty(query, agent.encode()) is expected
