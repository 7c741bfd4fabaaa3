"""Tests of the permissions to approve and sign certificates, and of groups that a CertificateSigningRequest may not
contain.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from ctrlmgr.admission.admission_plugin import Plugin
from ctrlmgr.admission.plugins.certificates import (
    BUNDLES,
    CertificateApproval,
    CertificateSigning,
    CertificateSubjectRestriction,
    ClusterTrustBundleAttest,
)
from ctrlmgr.authentication.user import User
from ctrlmgr.authorization.attributes import Attributes as Question
from ctrlmgr.authorization.authorizer import ALLOWED, Immediate, Verdict
from ctrlmgr.authorization.authorizer import Decision as Decided
from ctrlmgr.engine.admission_attributes import Verb
from ctrlmgr.engine.features.gates import switch
from ctrlmgr.errors import Forbidden
from ctrlmgr.kinds.builtin import builtin_kinds
from tests.admission.stage import Write

PATH = "certificates.k8s.io/v1/certificatesigningrequests"
SIGNER = "example.com/hooks"
APPROVED = {"conditions": [{"type": "Approved", "status": "True"}]}
SIGNED = {"certificate": "eA=="}


class AllowsOneVerb(Immediate):
    """An authorizer that allows one verb on signers with one name."""

    def __init__(self, *rights: tuple[str, str]) -> None:
        self._rights = rights

    def authorize(self, user: User, attributes: Question) -> Verdict:
        assert (attributes.resource, attributes.group, attributes.version) == ("signers", "certificates.k8s.io", "*")
        known = (attributes.verb, attributes.name) in self._rights
        return ALLOWED if known else Verdict(Decided.NO_OPINION, "no rule")


def request(signer: str = SIGNER, status: dict[str, Any] | None = None, csr: str = "") -> dict[str, Any]:
    return {"spec": {"signerName": signer, "request": csr}, "status": status or {}}


def written(plugin: Plugin, new: dict[str, Any], old: dict[str, Any] | None, subresource: str) -> str:
    """Return the message with which a plugin refuses a write; the string is empty if the plugin accepts the write."""
    try:
        Write(PATH, new, old, subresource=subresource).admit(plugin)
    except Forbidden as refused:
        return str(refused).partition(" is forbidden: ")[2]
    return ""


@pytest.mark.parametrize(
    ("rights", "is_allowed"),
    [
        ((("approve", SIGNER),), True),
        ((("approve", "example.com/*"),), True),
        ((("approve", "example.com/others"),), False),
        ((("sign", SIGNER),), False),
        ((), False),
    ],
)
def test_approving_requires_the_right_to_the_signer(rights: tuple[tuple[str, str], ...], is_allowed: bool) -> None:
    said = written(CertificateApproval(AllowsOneVerb(*rights)), request(status=APPROVED), request(), "approval")
    assert said == ("" if is_allowed else f'user not permitted to approve requests with signerName "{SIGNER}"')
    assert not written(CertificateApproval(AllowsOneVerb()), request(status=APPROVED), request(), "status")


@pytest.mark.parametrize(
    ("old", "new", "is_asked"),
    [
        ({}, SIGNED, True),
        ({}, APPROVED, True),
        (APPROVED, {**APPROVED, **SIGNED}, True),
        (SIGNED, SIGNED, False),
        ({}, {"certificate": "", "conditions": []}, False),
    ],
)
def test_signing_requires_the_right_to_the_signer(old: dict[str, Any], new: dict[str, Any], is_asked: bool) -> None:
    said = written(CertificateSigning(AllowsOneVerb()), request(status=new), request(status=old), "status")
    assert said == (f'user not permitted to sign requests with signerName "{SIGNER}"' if is_asked else "")
    allowed = CertificateSigning(AllowsOneVerb(("sign", "example.com/*")))
    assert not written(allowed, request(status=new), request(status=old), "status")


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    switch({"ClusterTrustBundle": True})
    monkeypatch.setattr("tests.kinds.stage.KINDS", builtin_kinds(served=["certificates.k8s.io/v1beta1"]))
    yield
    switch({})


def bundle(signer: str = SIGNER, **metadata: Any) -> dict[str, Any]:
    return {"metadata": {"name": "b", **metadata}, "spec": {"signerName": signer, "trustBundle": "pem"}}


@pytest.mark.usefixtures("served")
@pytest.mark.parametrize(
    ("new", "old", "rights", "is_allowed"),
    [
        (bundle(), None, (), False),
        (bundle(), None, (("attest", SIGNER),), True),
        (bundle(), None, (("attest", "example.com/*"),), True),
        (bundle(), None, (("sign", SIGNER),), False),
        (bundle(""), None, (), True),
        (bundle(), bundle(finalizers=["example.com/x"]), (), True),
        (bundle(), bundle(labels={"a": "b"}), (), False),
    ],
)
def test_a_bundle_of_a_signer_requires_the_right_to_attest(
    new: dict[str, Any], old: dict[str, Any] | None, rights: tuple[tuple[str, str], ...], is_allowed: bool
) -> None:
    plugin = ClusterTrustBundleAttest(AllowsOneVerb(*rights))
    path = "certificates.k8s.io/v1beta1/clustertrustbundles"
    if is_allowed:
        assert Write(path, new, old).admit(plugin) is not None
    else:
        with pytest.raises(Forbidden, match=f'user not permitted to attest for signerName "{SIGNER}"'):
            Write(path, new, old).admit(plugin)


@pytest.mark.usefixtures("served")
def test_the_right_to_attest_is_checked_only_with_the_gate() -> None:
    plugin = ClusterTrustBundleAttest(AllowsOneVerb())
    handled = [plugin.handles(BUNDLES, "", each) for each in (Verb.CREATE, Verb.UPDATE, Verb.DELETE)]
    assert handled == [True, True, False]
    switch({})
    assert not plugin.handles(BUNDLES, "", Verb.CREATE)


def certificate_request(*organizations: str) -> str:
    """Return the encoded request for a certificate whose subject is a member of `groups`."""
    names = [x509.NameAttribute(NameOID.COMMON_NAME, "alice")]
    names += [x509.NameAttribute(NameOID.ORGANIZATION_NAME, each) for each in organizations]
    made = x509.CertificateSigningRequestBuilder().subject_name(x509.Name(names))
    signed = made.sign(ec.generate_private_key(ec.SECP256R1()), hashes.SHA256())
    return base64.b64encode(signed.public_bytes(serialization.Encoding.PEM)).decode()


@pytest.mark.parametrize(
    ("signer", "groups", "is_refused"),
    [
        ("kubernetes.io/kube-apiserver-client", ("system:masters",), True),
        ("kubernetes.io/kube-apiserver-client", ("developers", "system:masters"), True),
        ("kubernetes.io/kube-apiserver-client", ("developers",), False),
        (SIGNER, ("system:masters",), False),
    ],
)
def test_no_client_certificate_of_the_superuser_group_is_issued(
    signer: str, groups: tuple[str, ...], is_refused: bool
) -> None:
    said = written(CertificateSubjectRestriction(), request(signer, csr=certificate_request(*groups)), None, "")
    words = "use of kubernetes.io/kube-apiserver-client signer with system:masters group is not allowed"
    assert said == (words if is_refused else "")
