from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from ctrlmgr.kinds.certificates.certificate_signing_request import CertificateSigningRequestStrategy
from tests.kinds.certificates.test_certificate_signing_request import METADATA, SPEC
from tests.kinds.write import WriteResult, update

STRATEGY = CertificateSigningRequestStrategy()
NOW = "2024-05-01T12:00:00Z"
THEN = "2024-04-01T12:00:00Z"
TIMES = {"lastUpdateTime": THEN, "lastTransitionTime": THEN}
EXCLUSIVE = "Approved and Denied conditions are mutually exclusive"


@cache
def certificate() -> str:
    key = ec.derive_private_key(7, ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "a")])
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    builder = builder.serial_number(1).not_valid_before(datetime(2024, 1, 1, tzinfo=UTC))
    builder = builder.not_valid_after(datetime(2034, 1, 1, tzinfo=UTC))
    return builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM).decode()


def encoded(text: str) -> str:
    return b64encode(text.encode()).decode()


def condition(type_: str, status: str = "True", **rest: str) -> dict[str, str]:
    return {"type": type_, "status": status, **rest}


def old_condition(type_: str, status: str = "True", **rest: str) -> dict[str, str]:
    return condition(type_, status, **TIMES, **rest)


def updated(subresource: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> WriteResult:
    stored = {"metadata": METADATA, "spec": SPEC, "status": old}
    return update(STRATEGY, stored, {"status": new}, namespaced=False, subresource=subresource)


@pytest.mark.parametrize("type_", ["Approved", "Denied", "Failed", "Mine"])
def test_a_decision_has_its_times(type_: str) -> None:
    written = updated("approval", {}, {"conditions": [condition(type_, reason="r", message="m")]})
    assert written.messages == []
    [found] = written.object["status"]["conditions"]
    assert list(found.items()) == [
        ("type", type_),
        ("status", "True"),
        ("reason", "r"),
        ("message", "m"),
        ("lastUpdateTime", NOW),
        ("lastTransitionTime", NOW),
    ]


@pytest.mark.parametrize(("status", "transition"), [("True", THEN), ("False", NOW)])
def test_a_missing_transition_time_is_kept(status: str, transition: str) -> None:
    written = updated(
        "approval",
        {"conditions": [old_condition("Mine")]},
        {"conditions": [condition("Mine", status), old_condition("Other")]},
    )
    assert written.messages == []
    assert [
        (each["lastUpdateTime"], each["lastTransitionTime"]) for each in written.object["status"]["conditions"]
    ] == [(NOW, transition), (THEN, THEN)]


@pytest.mark.parametrize("subresource", ["approval", "status"])
@pytest.mark.parametrize(
    ("old", "new", "messages"),
    [
        pytest.param(
            [],
            [{"type": "", "status": "True"}, {"type": "Mine"}],
            [
                "status.conditions[0].type: Required value",
                "status.conditions[1].status: Required value",
            ],
            id="what every condition has",
        ),
        pytest.param(
            [],
            [condition("Mine", "Maybe"), condition("Failed", "False")],
            [
                'status.conditions[0].status: Unsupported value: "Maybe": supported values: "False", "True", "Unknown"',
                'status.conditions[1].status: Unsupported value: "False": supported values: "True"',
            ],
            id="values",
        ),
        pytest.param(
            [],
            [condition("Mine"), condition("Mine", "False")],
            ['status.conditions[1].type: Duplicate value: "Mine"'],
            id="twice the same",
        ),
        pytest.param(
            [old_condition("Mine"), old_condition("Mine")],
            [condition("Mine"), condition("Mine", "False")],
            [],
            id="twice the same already",
        ),
        pytest.param([old_condition("")], [condition("")], [], id="of no type already"),
        pytest.param(
            [old_condition("Approved"), old_condition("Failed"), old_condition("Mine")],
            [],
            [
                f'status.conditions: Forbidden: updates may not remove a condition of type "{each}"'
                for each in ("Approved", "Failed")
            ],
            id="taken away",
        ),
    ],
)
def test_conditions(
    subresource: str, old: Sequence[dict[str, str]], new: Sequence[dict[str, str]], messages: Sequence[str]
) -> None:
    assert updated(subresource, {"conditions": old}, {"conditions": new}).messages == messages


def test_a_denied_request_cannot_be_approved() -> None:
    denied = {"conditions": [old_condition("Denied")]}
    both = {"conditions": [old_condition("Denied"), condition("Approved")]}
    message = f'status.conditions: Invalid value: "Approved": {EXCLUSIVE}'
    assert updated("approval", denied, both).messages == [message]
    assert updated("approval", both, both).messages == []


@pytest.mark.parametrize("type_", ["Approved", "Denied"])
def test_only_the_approval_subresource_sets_decisions(type_: str) -> None:
    message = f'status.conditions: Forbidden: updates may not add a condition of type "{type_}"'
    assert updated("status", {}, {"conditions": [condition(type_)]}).messages == [message]
    before = old_condition(type_, reason="before")
    written = updated("status", {"conditions": [before]}, {"conditions": [condition(type_, reason="after")]})
    assert written.messages == []
    assert written.object["status"]["conditions"] == [before]


def test_a_certificate_is_immutable() -> None:
    given = {"certificate": encoded(f"Here it is:\n{certificate()}{certificate()}")}
    written = updated("status", {}, given)
    assert (written.messages, written.object["status"]) == ([], given)
    other = {"certificate": encoded(certificate())}
    message = "status.certificate: Forbidden: updates may not modify existing certificate content"
    assert updated("status", given, other).messages == [message]
    assert updated("status", given, {}).messages == [message]
    assert updated("status", given, given).messages == []


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("", "", id="nothing"),
        pytest.param("please", "must contain at least one CERTIFICATE PEM block", id="no block"),
        pytest.param(
            b64decode(SPEC["request"]).decode(),
            'only CERTIFICATE PEM blocks are allowed, found "CERTIFICATE REQUEST"',
            id="a request",
        ),
        pytest.param(
            certificate().replace("-----\n", "-----\nComment: a\n\n", 1),
            "no PEM block headers are permitted",
            id="headers",
        ),
        pytest.param(
            certificate() + certificate().replace("MII", "MIJ"), "x509: malformed certificate", id="one that is broken"
        ),
        pytest.param(
            "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n",
            "found CERTIFICATE PEM block containing 0 certificates",
            id="an empty one",
        ),
    ],
)
def test_a_certificate_must_be_valid(text: str, problem: str) -> None:
    message = f'status.certificate: Invalid value: "<certificate data>": {problem}'
    assert updated("status", {}, {"certificate": encoded(text)}).messages == ([message] if problem else [])


def test_an_existing_invalid_certificate_is_tolerated() -> None:
    stored = {"certificate": encoded("please")}
    assert updated("status", stored, {**stored, "conditions": [condition("Failed")]}).messages == []
