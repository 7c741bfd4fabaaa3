"""Tests of PodCertificateRequests: defaults, the proof of the key, the limits of their fields, and columns."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import dsa, ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from ctrlmgr.engine.tables.ages import ages_at
from ctrlmgr.kinds.certificates.pod_certificate_request import PodCertificateRequestStrategy
from ctrlmgr.kinds.certificates.printers import POD_CERTIFICATE_REQUEST
from tests.kinds.write import create, update

STRATEGY = PodCertificateRequestStrategy()
EC_KEY = ec.generate_private_key(ec.SECP256R1())
EDWARDS = ed25519.Ed25519PrivateKey.generate()
RSA_KEY = rsa.generate_private_key(65537, 3072)
SMALL = rsa.generate_private_key(65537, 2048)
OLD_CURVE = ec.generate_private_key(ec.SECP224R1())
UID = b"pod-uid"


def encoded(data: bytes) -> str:
    return b64encode(data).decode()


def signed(key: Any) -> bytes:
    algorithm = None if isinstance(key, ed25519.Ed25519PrivateKey) else hashes.SHA256()
    return (
        x509.CertificateSigningRequestBuilder()
        .subject_name(x509.Name([]))
        .sign(key, algorithm)
        .public_bytes(Encoding.DER)
    )


def public(key: Any) -> bytes:
    found: bytes = key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return found


def request(**changes: Any) -> dict[str, Any]:
    spec = {
        "signerName": "example.com/s",
        "podName": "p",
        "podUID": UID.decode(),
        "serviceAccountName": "default",
        "serviceAccountUID": "sa-uid",
        "nodeName": "n",
        "nodeUID": "node-uid",
        "stubPKCS10Request": encoded(signed(EC_KEY)),
        **changes,
    }
    return {"metadata": {"name": "r"}, "spec": {name: value for name, value in spec.items() if value is not None}}


def pair(key: bytes, proof: bytes) -> dict[str, Any]:
    return request(stubPKCS10Request=None, pkixPublicKey=encoded(key), proofOfPossession=encoded(proof))


def test_the_lifetime_is_a_day_by_default() -> None:
    made = create(STRATEGY, request())
    assert made.messages == []
    assert made.object["spec"]["maxExpirationSeconds"] == 86400


BROKEN = signed(EC_KEY)[:-1] + bytes([signed(EC_KEY)[-1] ^ 1])
BOTH = "spec: Invalid value: exactly one of (stubPKCS10Request) or (pkixPublicKey, proofOfPossession) must be set"
STUB = "spec.stubPKCS10Request: Invalid value: "


@pytest.mark.parametrize(
    ("fields", "errors"),
    [
        (request(stubPKCS10Request=encoded(signed(EDWARDS))), []),
        (request(stubPKCS10Request=encoded(signed(RSA_KEY))), []),
        (request(stubPKCS10Request=None), [BOTH]),
        (request(pkixPublicKey="eA=="), [BOTH]),
        (request(stubPKCS10Request="eA=="), [f"{STUB}must be a valid PKCS#10 CSR"]),
        (
            request(stubPKCS10Request=encoded(b"x" * 10241)),
            ["spec.stubPKCS10Request: Too long: may not be more than 10240 bytes"],
        ),
        (
            request(stubPKCS10Request=encoded(signed(SMALL))),
            [f'{STUB}"2048-bit modulus": RSA keys must have modulus size 3072 or 4096'],
        ),
        (
            request(stubPKCS10Request=encoded(signed(OLD_CURVE))),
            [f'{STUB}"curve P-224": elliptic public keys must use curve P256, P384, or P521'],
        ),
        (
            request(stubPKCS10Request=encoded(signed(ec.generate_private_key(ec.SECP256K1())))),
            [f"{STUB}must be a valid PKCS#10 CSR"],
        ),
        (
            request(stubPKCS10Request=encoded(signed(dsa.generate_private_key(1024)))),
            [f"{STUB}unknown public key type; supported types are Ed25519, ECDSA, and RSA"],
        ),
        (request(stubPKCS10Request=encoded(BROKEN)), [f"{STUB}invalid signature"]),
    ],
)
def test_the_request_is_signed_with_an_accepted_key(fields: dict[str, Any], errors: list[str]) -> None:
    assert create(STRATEGY, fields).messages == errors


PSS = padding.PSS(padding.MGF1(hashes.SHA256()), 32)
UNPROVEN = ["spec.proofOfPossession: Invalid value: could not verify proof-of-possession signature"]


@pytest.mark.parametrize(
    ("fields", "errors"),
    [
        (pair(public(EDWARDS), EDWARDS.sign(UID)), []),
        (pair(public(EC_KEY), EC_KEY.sign(UID, ec.ECDSA(hashes.SHA256()))), []),
        (pair(public(RSA_KEY), RSA_KEY.sign(UID, PSS, hashes.SHA256())), []),
        (pair(public(EDWARDS), EDWARDS.sign(b"another")), UNPROVEN),
        (pair(public(EC_KEY), EDWARDS.sign(UID)), UNPROVEN),
        (pair(public(RSA_KEY), RSA_KEY.sign(UID, padding.PKCS1v15(), hashes.SHA256())), UNPROVEN),
        (pair(b"x", b"y"), ['spec.pkixPublicKey: Invalid value: "eA==": must be a valid PKIX-serialized public key']),
        (
            pair(public(OLD_CURVE), b"y"),
            ['spec.pkixPublicKey: Invalid value: "curve P-224": elliptic public keys must use curve P256 or P384'],
        ),
    ],
)
def test_a_signature_of_the_pods_uid_proves_the_key(fields: dict[str, Any], errors: list[str]) -> None:
    assert create(STRATEGY, fields).messages == errors


@pytest.mark.parametrize(
    ("changes", "errors"),
    [
        (
            {"podUID": None, "nodeUID": "x" * 129},
            [
                'spec.podUID: Invalid value: "": must not be empty',
                "spec.nodeUID: Too long: may not be more than 128 bytes",
            ],
        ),
        ({"signerName": None}, ["spec.signerName: Required value"]),
        (
            {"maxExpirationSeconds": 3599},
            ["spec.maxExpirationSeconds: Invalid value: 3599: must be in the range [3600, 7862400]"],
        ),
        ({"maxExpirationSeconds": 7862400}, []),
        (
            {"signerName": "kubernetes.io/s", "maxExpirationSeconds": 86401},
            ["spec.maxExpirationSeconds: Invalid value: 86401: must be in the range [3600, 86400]"],
        ),
        (
            {"unverifiedUserAnnotations": {"plain": "x"}},
            [
                'spec.unverifiedUserAnnotations: Invalid value: "plain": must be a domain-prefixed key (such as '
                '"acme.io/foo")'
            ],
        ),
    ],
)
def test_the_fields_are_validated(changes: dict[str, Any], errors: list[str]) -> None:
    assert create(STRATEGY, request(**changes)).messages == errors


def test_the_spec_is_immutable() -> None:
    old = create(STRATEGY, request()).object
    (message,) = update(STRATEGY, old, {"spec": {**old["spec"], "podName": "q"}}).messages
    assert message.startswith('spec: Invalid value: {"SignerName":"example.com/s","PodName":"q","PodUID":"pod-uid",')
    assert message.endswith('"UnverifiedUserAnnotations":null}: field is immutable')


def test_the_columns_show_the_state() -> None:
    fields = {**request(unverifiedUserAnnotations={"a.b/c": "d"}), "status": {"conditions": [{"type": "Denied"}]}}
    cells = ["p", "default", "n", "example.com/s", "Denied", "a.b/c=d"]
    assert list(POD_CERTIFICATE_REQUEST.row(fields, ages_at(0))) == cells
    assert [*POD_CERTIFICATE_REQUEST.row(request(), ages_at(0))][4:] == ["Pending", "<none>"]
