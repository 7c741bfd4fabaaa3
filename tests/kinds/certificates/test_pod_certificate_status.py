"""Tests of the status of PodCertificateRequests: final states, and certificates that fit the request."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from ctrlmgr.kinds.certificates.pod_certificate_status import validate_status
from tests.kinds.certificates.test_pod_certificate_request import EC_KEY, request

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
HOUR = timedelta(hours=1)


def text(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def leaf(key: Any = EC_KEY, *, begin: datetime = NOW, lifetime: timedelta = 2 * HOUR, name: str = "p.example") -> str:
    subject = x509.Name([])
    made = x509.CertificateBuilder().subject_name(subject).issuer_name(subject).public_key(key.public_key())
    made = made.serial_number(7).not_valid_before(begin).not_valid_after(begin + lifetime)
    made = made.add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
    return made.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM).decode()


def condition(type_: str, status: str = "True") -> dict[str, Any]:
    return {"type": type_, "status": status, "reason": "Why", "message": "", "lastTransitionTime": text(NOW)}


def issued(chain: str | None = None, **changes: Any) -> dict[str, Any]:
    status = {
        "conditions": [condition("Issued")],
        "certificateChain": leaf() if chain is None else chain,
        "notBefore": text(NOW),
        "notAfter": text(NOW + 2 * HOUR),
        "beginRefreshAt": text(NOW + HOUR),
        **changes,
    }
    return {name: value for name, value in status.items() if value is not None}


def messages(status: dict[str, Any], before: dict[str, Any] | None = None, **spec: Any) -> list[str]:
    asked = request(maxExpirationSeconds=86400, **spec)
    old, new = {**asked, "status": before or {}}, {**asked, "status": status}
    return [error.message for error in validate_status(new, old, text(NOW))]


CHAIN = "status.certificateChain: Invalid value: "


@pytest.mark.parametrize(
    ("status", "before", "errors"),
    [
        ({"conditions": [condition("Denied")]}, {}, []),
        ({"conditions": [condition("Failed")]}, {}, []),
        ({}, {}, []),
        (
            {"conditions": [condition("Denied"), condition("Failed")]},
            {},
            [
                'status.conditions.[1].type: Invalid value: "Failed": There may be at most one condition with type '
                '"Issued", "Denied", or "Failed"'
            ],
        ),
        (
            {"conditions": [condition("Denied", "False")]},
            {},
            ['status.conditions.[0].status: Unsupported value: "False": supported values: "True"'],
        ),
        (
            {"conditions": [condition("Odd")]},
            {},
            ['status.conditions.[0].type: Unsupported value: "Odd": supported values: "Issued", "Denied", "Failed"'],
        ),
        (
            issued(),
            {"conditions": [condition("Denied")]},
            ["status: Invalid value: immutable after PodCertificateRequest is issued, denied, or failed"],
        ),
        (
            {"conditions": [condition("Denied")], "notBefore": text(NOW)},
            {},
            [
                "status: Invalid value: non-condition status fields must be empty when denying or failing the "
                "PodCertificateRequest"
            ],
        ),
        (
            {"notBefore": text(NOW)},
            {},
            ['status: Invalid value: status is immutable unless transitioning to "Issued", "Denied", or "Failed"'],
        ),
    ],
)
def test_a_status_is_written_once(status: dict[str, Any], before: dict[str, Any], errors: list[str]) -> None:
    assert messages(status, before) == errors


def test_an_issued_certificate_fits_the_request() -> None:
    assert messages(issued()) == []
    assert messages(issued(leaf() + leaf(ec.generate_private_key(ec.SECP256R1())))) == []


@pytest.mark.parametrize(
    ("status", "field", "problem"),
    [
        (issued(""), "certificateChain", "issued certificate chain must contain at least one certificate"),
        (
            issued(leaf().replace("CERTIFICATE", "X")),
            "certificateChain",
            "issued certificate chain must consist entirely of CERTIFICATE PEM blocks",
        ),
        (
            issued("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"),
            "certificateChain",
            "leaf certificate does not parse as valid X.509",
        ),
        (
            issued(leaf(ec.generate_private_key(ec.SECP256R1()))),
            "certificateChain",
            "leaf certificate was not issued to the requested public key",
        ),
        (issued(leaf(name="a..b")), "certificateChain", "leaf certificate's DNSName should not contain '..'"),
        (
            issued(leaf() + leaf().replace("CERTIFICATE", "X")),
            "certificateChain",
            "issued certificate chain must consist entirely of CERTFICATE PEM blocks",
        ),
        (issued(notBefore=None), "notBefore", "must be present and consistent with the issued certificate"),
        (
            issued(notBefore=text(NOW + HOUR)),
            "notBefore",
            "must be set to the NotBefore time encoded in the leaf certificate",
        ),
        (
            issued(leaf(begin=NOW - HOUR, lifetime=3 * HOUR), notBefore=text(NOW - HOUR)),
            "notBefore",
            "must be set to within 5 minutes of kube-apiserver's current time",
        ),
        (
            issued(notAfter=text(NOW + HOUR)),
            "notAfter",
            "must be set to the NotAfter time encoded in the leaf certificate",
        ),
        (
            issued(leaf(lifetime=HOUR / 2), notAfter=text(NOW + HOUR / 2)),
            "certificateChain",
            "leaf certificate lifetime must be >= 1 hour",
        ),
        (
            issued(leaf(lifetime=25 * HOUR), notAfter=text(NOW + 25 * HOUR)),
            "certificateChain",
            "leaf certificate lifetime must be <= spec.maxExpirationSeconds (86400)",
        ),
        (
            issued(beginRefreshAt=text(NOW)),
            "beginRefreshAt",
            "must be at least 10 minutes after status.notBefore",
        ),
        (
            issued(beginRefreshAt=text(NOW + 2 * HOUR)),
            "beginRefreshAt",
            "must be at least 10 minutes before status.notAfter",
        ),
    ],
)
def test_other_certificates_and_times_are_refused(status: dict[str, Any], field: str, problem: str) -> None:
    (message,) = messages(status)
    assert message.startswith(f"status.{field}: ")
    assert message.endswith(f": {problem}")
