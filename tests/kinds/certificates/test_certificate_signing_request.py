from base64 import b64encode
from typing import Any

import pytest

from ctrlmgr.engine.validation import name_formats
from ctrlmgr.kinds.certificates.certificate_signing_request import USAGES, CertificateSigningRequestStrategy
from tests.kinds.write import WriteResult, create, stored, update

STRATEGY = CertificateSigningRequestStrategy()
REQUEST = """-----BEGIN CERTIFICATE REQUEST-----
MIHHMG4CAQAwDDEKMAgGA1UEAwwBeDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IA
BPR03yDqAoO4PZrLX2PrlJ7FQ57m0Yz7N03S3MMr3WZrb08nFk7kdCub1cV6wJfY
y0kxj2czau+CsA+lO8M/aTSgADAKBggqhkjOPQQDAgNJADBGAiEA2xOfEH4B8WOy
p8csq8gssuW3O6B5h4d7qTW1XFn40eECIQCDhcgHNicC08+hOQcQJL8tdHt0ML/0
7CHIp4ZhFWIG/A==
-----END CERTIFICATE REQUEST-----
"""
NO_REQUEST = "PEM block type must be CERTIFICATE REQUEST"


def encoded(text: str) -> str:
    return b64encode(text.encode()).decode()


SPEC: dict[str, Any] = {"request": encoded(REQUEST), "signerName": "example.com/s", "usages": ["client auth"]}
METADATA = {"name": "any name: at all"}
APPROVED = {"conditions": [{"type": "Approved", "status": "True"}]}


def created(**spec: Any) -> WriteResult:
    request = {"metadata": METADATA, "spec": {**SPEC, **spec}, "status": APPROVED}
    return create(STRATEGY, request, namespaced=False, user="alice")


def updated(subresource: str = "", **change: Any) -> dict[str, Any]:
    old = {"metadata": METADATA, "spec": SPEC, "status": {"certificate": "old"}}
    written = update(STRATEGY, old, change, namespaced=False, subresource=subresource)
    assert written.errors == []
    return written.object


def test_a_request_names_its_requester_and_is_not_approved() -> None:
    written = created(username="root", uid="0", groups=["system:masters"], extra={"a": ["b"]})
    assert written.errors == []
    assert written.object["spec"] == {**SPEC, "username": "alice"}
    assert written.object["status"] == {}


@pytest.mark.parametrize(
    ("spec", "messages"),
    [
        ({"expirationSeconds": 600}, []),
        (
            {"expirationSeconds": 599},
            [
                "expirationSeconds: Invalid value: 599: may not specify a duration less than 600 seconds (10 minutes)",
            ],
        ),
        ({"usages": []}, ["usages: Required value"]),
        ({"usages": ["any", "client auth", "any"]}, ['usages[2]: Duplicate value: "any"']),
        (
            {"usages": ["spying"]},
            [
                'usages[0]: Unsupported value: "spying": supported values: '
                + ", ".join(f'"{each}"' for each in sorted(USAGES))
            ],
        ),
        ({"signerName": ""}, ["signerName: Required value"]),
        *(
            (
                {"signerName": each},
                [
                    f'signerName: Invalid value: "{each}": '
                    "must be a fully qualified domain and path of the form 'example.com/signer-name'"
                ],
            )
            for each in ("example.com", "example.com/a/b")
        ),
        (
            {"signerName": "example/s"},
            ['signerName: Invalid value: "example": should be a domain with at least two segments separated by dots'],
        ),
        (
            {"signerName": "ex.COM/S"},
            [
                f'signerName: Invalid value: "ex.COM": validating label "COM": {name_formats.dns1123_label("COM")[0]}',
                f'signerName: Invalid value: "S": validating label "S": {name_formats.dns1123_subdomain("S")[0]}',
            ],
        ),
    ],
)
def test_requests(spec: dict[str, Any], messages: list[str]) -> None:
    assert created(**spec).messages == [f"spec.{each}" for each in messages]


@pytest.mark.parametrize("headers", ["", "Comment: a\n\n"])
def test_a_request_can_follow_other_pem_blocks(headers: str) -> None:
    dressed = REQUEST.replace("-----\n", f"-----\n{headers}", 1).replace("\n", "\r\n" if not headers else "\n")
    assert created(request=encoded(f"What I want:\n{dressed}")).messages == []


@pytest.mark.parametrize(
    ("request_", "problem"),
    [
        (None, NO_REQUEST),
        ("", NO_REQUEST),
        (encoded("please"), NO_REQUEST),
        (encoded(REQUEST.replace("CERTIFICATE REQUEST", "CERTIFICATE")), NO_REQUEST),
        (encoded(REQUEST.replace("MIHH", "M!HH")), NO_REQUEST),
        (encoded(REQUEST[:100]), NO_REQUEST),
        (encoded(REQUEST.replace("MIHH", "MIHI")), "x509: malformed certificate request"),
        (encoded(REQUEST.replace("7CHI", "8CHI")), "x509: ECDSA verification failure"),
    ],
)
def test_a_request_must_be_valid_and_signed(request_: str | None, problem: str) -> None:
    shown = "null" if request_ is None else f'"{request_}"'
    assert created(request=request_).messages == [f"spec.request: Invalid value: {shown}: {problem}"]


def test_the_spec_is_immutable() -> None:
    assert updated(spec={**SPEC, "request": "x"})["spec"] == SPEC


def test_approval_changes_only_conditions() -> None:
    status = updated("approval", status={**APPROVED, "certificate": "new"})["status"]
    assert status["certificate"] == "old"
    assert [each["type"] for each in status["conditions"]] == ["Approved"]


def test_a_request_is_selected_by_its_signer() -> None:
    request = stored("certificates.k8s.io/v1", "CertificateSigningRequest", {"metadata": METADATA, "spec": SPEC})
    assert STRATEGY.selectable(request) == {"spec.signerName": "example.com/s"}
