from typing import Any

import pytest

from ctrlmgr.resources.strategies.certificate_signing_request import CertificateSigningRequestStrategy
from ctrlmgr.resources.validation import names
from tests.resources.strategies.write import Written, create, stored, update

STRATEGY = CertificateSigningRequestStrategy()
SPEC: dict[str, Any] = {"request": "LS0t", "signerName": "example.com/s", "usages": ["client auth"]}
METADATA = {"name": "any name: at all"}
APPROVED = {"conditions": [{"type": "Approved", "status": "True"}]}


def created(**spec: Any) -> Written:
    request = {"metadata": METADATA, "spec": {**SPEC, **spec}, "status": APPROVED}
    return create(STRATEGY, request, namespaced=False, user="alice")


def updated(subresource: str = "", **change: Any) -> dict[str, Any]:
    old = {"metadata": METADATA, "spec": SPEC, "status": {"certificate": "old"}}
    written = update(STRATEGY, old, change, namespaced=False, subresource=subresource)
    assert written.errors == []
    return written.object


def test_a_request_says_who_asked_and_is_not_approved() -> None:
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
                f'signerName: Invalid value: "ex.COM": validating label "COM": {names.dns1123_label("COM")[0]}',
                f'signerName: Invalid value: "S": validating label "S": {names.dns1123_subdomain("S")[0]}',
            ],
        ),
    ],
)
def test_requests(spec: dict[str, Any], messages: list[str]) -> None:
    assert created(**spec).messages == [f"spec.{each}" for each in messages]


def test_what_was_asked_for_stays() -> None:
    assert updated(spec={**SPEC, "request": "x"})["spec"] == SPEC


def test_approval_changes_conditions_alone() -> None:
    status = updated("approval", status={**APPROVED, "certificate": "new"})["status"]
    assert status == {**APPROVED, "certificate": "old"}


def test_a_request_is_selected_by_its_signer() -> None:
    request = stored("certificates.k8s.io/v1", "CertificateSigningRequest", {"metadata": METADATA, "spec": SPEC})
    assert STRATEGY.selectable(request) == {"spec.signerName": "example.com/s"}
