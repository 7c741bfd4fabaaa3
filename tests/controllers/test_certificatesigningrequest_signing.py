from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Resource
from ctrlmgr.authentication.user import User
from ctrlmgr.authentication.x509_verification import UID_OID, certificate_user, vouch
from ctrlmgr.client import EngineClient
from ctrlmgr.controllers.certificatesigningrequest_approving import controller as csr_approving
from ctrlmgr.controllers.certificatesigningrequest_cleaner import controller as csr_cleaner
from ctrlmgr.controllers.certificatesigningrequest_signing.authority import SigningAuthority
from ctrlmgr.controllers.certificatesigningrequest_signing.authority_files import AuthorityFiles
from ctrlmgr.controllers.certificatesigningrequest_signing.controller import new_csr_signing_controller
from ctrlmgr.controllers.certificatesigningrequest_signing.signing_requests import (
    CLIENT_SIGNER,
    KUBELET_CLIENT_SIGNER,
    KUBELET_SERVING_SIGNER,
    LEGACY_SIGNER,
)
from ctrlmgr.controllers.descriptor import NoOptions
from ctrlmgr.controllers.issuer_dependencies import Identity
from ctrlmgr.engine.request_options import Requester
from ctrlmgr.errors import SettingsError
from ctrlmgr.eventlog import Author, EventType, Proposal
from ctrlmgr.manager import Controller
from tests.authentication.authorities import CertificateAndKey, make, subject
from tests.controllers.stage_context import StageContext, StageIdentityContext
from tests.controllers.worked_stage import WorkedStage

CSRS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
SIGNERS = (CLIENT_SIGNER, KUBELET_CLIENT_SIGNER, KUBELET_SERVING_SIGNER, LEGACY_SIGNER)
CLIENT = ["digital signature", "key encipherment", "client auth"]
SERVING = ["digital signature", "key encipherment", "server auth"]
YEAR = 365 * 24 * 3600
KEY = ec.generate_private_key(ec.SECP256R1())

ROOT = make(
    subject("root"),
    is_authority=True,
    begins=datetime(2020, 1, 1, tzinfo=UTC),
    ends=datetime(2040, 1, 1, tzinfo=UTC),
    more=[(x509.SubjectKeyIdentifier(b"root"), False)],
)


def request(whose: x509.Name, *names: x509.GeneralName, key: ec.EllipticCurvePrivateKey = KEY) -> str:
    builder = x509.CertificateSigningRequestBuilder().subject_name(whose)
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return b64encode(builder.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM)).decode()


NODE = subject("system:node:n1", ["system:nodes"])


def signing_request(signer: str, wanted: str, usages: Sequence[str], seconds: int | None = None) -> dict[str, Any]:
    spec = {"signerName": signer, "request": wanted, "usages": list(usages)}
    return {"metadata": {"name": "one"}, "spec": {**spec, **({"expirationSeconds": seconds} if seconds else {})}}


class SigningStage(WorkedStage):
    def __init__(self, root: CertificateAndKey = ROOT) -> None:
        authority = SigningAuthority(root.certificate, root.key)
        self.root = root

        def controller(stage: WorkedStage) -> Controller:
            authorities = {name: lambda: authority for name in SIGNERS}
            return new_csr_signing_controller(StageContext(stage), authorities, longest=YEAR)

        super().__init__(controller)

    def approve(self, name: str = "one") -> None:
        found = self.send("GET", f"{CSRS}/{name}").body
        condition = {"type": "Approved", "status": "True", "reason": "Test", "message": ""}
        answer = self.send("PUT", f"{CSRS}/{name}/approval", {**found, "status": {"conditions": [condition]}})
        assert answer.code == 200, answer.body

    def signed(self, signing_request: dict[str, Any], *, of_old: bool = False) -> x509.Certificate:
        self.create(CSRS, signing_request)
        if of_old:
            self._age()
        self.approve()
        self.work()
        status = self.send("GET", f"{CSRS}/one").body["status"]
        return x509.load_pem_x509_certificate(b64decode(status["certificate"]))

    def _age(self) -> None:
        """Change a CertificateSigningRequest to the form that was used before signer names existed; the current API
        refuses this form.
        """
        made = self.stored(Resource("certificates.k8s.io", "certificatesigningrequests"), "one")
        assert made is not None
        fields = made.to_dict()
        fields["spec"] |= {"signerName": LEGACY_SIGNER, "usages": ["cert sign", *CLIENT]}
        proposal = Proposal(EventType.MODIFIED, Object.from_dict(fields), made.revision)
        self.log.append([proposal], author=Author("somebody"))

    def failure(self, signing_request: dict[str, Any]) -> str:
        self.create(CSRS, signing_request)
        self.approve()
        self.work()
        status = self.send("GET", f"{CSRS}/one").body["status"]
        assert "certificate" not in status
        conditions = {each["type"]: each for each in status["conditions"]}
        assert conditions["Failed"]["reason"] == "SignerValidationFailure"
        return str(conditions["Failed"]["message"])


@pytest.fixture
def stage() -> SigningStage:
    return SigningStage()


def seconds_of(certificate: x509.Certificate) -> float:
    return (certificate.not_valid_after_utc - certificate.not_valid_before_utc).total_seconds()


def test_an_issued_certificate_authenticates_its_subject(stage: SigningStage) -> None:
    carol = stage.signed(signing_request(CLIENT_SIGNER, request(subject("carol", ["qa", "developers"])), CLIENT))
    now = stage.clock.now() / 1_000_000
    leaf = vouch([carol.public_bytes(Encoding.DER)], [stage.root.certificate], now).leaf
    user = certificate_user(leaf)
    assert user is not None
    assert (user.name, sorted(user.groups)) == ("carol", ["developers", "qa"])
    assert carol.public_key() == KEY.public_key()


def test_an_unapproved_request_is_not_signed(stage: SigningStage) -> None:
    stage.create(CSRS, signing_request(CLIENT_SIGNER, request(subject("carol")), CLIENT))
    stage.work()
    assert stage.written() == []


def test_requests_for_other_signers_are_ignored(stage: SigningStage) -> None:
    stage.create(CSRS, signing_request("example.com/own", request(subject("carol")), CLIENT))
    stage.approve()
    stage.work()
    assert stage.written() == []


def test_a_request_is_signed_once(stage: SigningStage) -> None:
    stage.signed(signing_request(CLIENT_SIGNER, request(subject("carol")), CLIENT))
    stage.patch(f"{CSRS}/one", {"metadata": {"labels": {"a": "b"}}})
    stage.work()
    assert len(stage.written()) == 1


@pytest.mark.parametrize(
    ("asked_for", "lasts"), [(None, YEAR), (600, 900), (3600, 3900), (8 * 3600, 8 * 3600), (2 * YEAR, YEAR)]
)
def test_the_requested_duration_is_used_within_limits(stage: SigningStage, asked_for: int | None, lasts: int) -> None:
    certificate = stage.signed(signing_request(CLIENT_SIGNER, request(subject("carol")), CLIENT, asked_for))
    assert seconds_of(certificate) == lasts
    assert certificate.not_valid_before_utc.timestamp() == stage.clock.now() // 1_000_000 - 300


def test_a_certificate_never_outlives_its_authority() -> None:
    ends = datetime.fromtimestamp(SigningStage().clock.now() // 1_000_000, UTC) + timedelta(hours=1)
    root = make(subject("short"), is_authority=True, begins=ends - timedelta(days=9), ends=ends)
    stage = SigningStage(root)
    assert stage.signed(signing_request(CLIENT_SIGNER, request(subject("carol")), CLIENT)).not_valid_after_utc == ends


def test_an_expired_authority_signs_nothing() -> None:
    ends = datetime.fromtimestamp(SigningStage().clock.now() // 1_000_000, UTC) - timedelta(hours=1)
    stage = SigningStage(make(subject("over"), is_authority=True, begins=ends - timedelta(days=9), ends=ends))
    stage.create(CSRS, signing_request(CLIENT_SIGNER, request(subject("carol")), CLIENT))
    stage.approve()
    stage.hear()
    stage.controller.process_next(timeout=0)
    assert stage.written() == []


def test_the_signer_determines_the_extensions(stage: SigningStage) -> None:
    names = [x509.DNSName("n1.example.com"), x509.IPAddress(ip_address("192.0.2.1"))]
    certificate = stage.signed(signing_request(KUBELET_SERVING_SIGNER, request(NODE, *names), SERVING))
    found = {each.oid: each for each in certificate.extensions}
    assert len(found) == 5
    usage = certificate.extensions.get_extension_for_class(x509.KeyUsage)
    assert usage.critical
    assert usage.value.digital_signature
    assert usage.value.key_encipherment
    assert not usage.value.key_cert_sign
    assert not certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    authority = certificate.extensions.get_extension_for_class(x509.AuthorityKeyIdentifier).value
    assert authority.key_identifier == b"root"
    assert list(certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value) == names


def test_csr_cannot_request_an_authority_or_a_uid(stage: SigningStage) -> None:
    builder = x509.CertificateSigningRequestBuilder().subject_name(subject("carol", (), ["another's uid"]))
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    wanted = b64encode(builder.sign(KEY, hashes.SHA256()).public_bytes(Encoding.PEM)).decode()
    certificate = stage.signed(signing_request(CLIENT_SIGNER, wanted, CLIENT), of_old=True)
    assert not certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    assert certificate.subject.get_attributes_for_oid(UID_OID) == []
    assert certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value == "carol"


@pytest.mark.parametrize(
    ("signer", "wanted", "usages", "reason"),
    [
        (CLIENT_SIGNER, request(subject("a")), ["digital signature"], "missing required usage for client certificate"),
        (CLIENT_SIGNER, request(subject("a")), [*CLIENT, "server auth"], "invalid usage for client certificate"),
        (KUBELET_CLIENT_SIGNER, request(subject("a")), CLIENT, "subject organization is not system:nodes"),
        (
            KUBELET_CLIENT_SIGNER,
            request(subject("a", ["system:nodes"])),
            CLIENT,
            "subject common name does not begin with system:node:",
        ),
        (
            KUBELET_CLIENT_SIGNER,
            request(subject("system:node:a", ["system:nodes", "system:masters"])),
            CLIENT,
            "subject organization is not system:nodes",
        ),
        (KUBELET_CLIENT_SIGNER, request(NODE, x509.DNSName("a")), CLIENT, "DNS subjectAltNames are not allowed"),
        (KUBELET_CLIENT_SIGNER, request(NODE), SERVING, "usages did not match"),
        (KUBELET_SERVING_SIGNER, request(NODE), SERVING, "DNS or IP subjectAltName is required"),
        (
            KUBELET_SERVING_SIGNER,
            request(NODE, x509.DNSName("a"), x509.RFC822Name("a@example.com")),
            SERVING,
            "Email subjectAltNames are not allowed",
        ),
        (
            KUBELET_SERVING_SIGNER,
            request(NODE, x509.DNSName("a"), x509.UniformResourceIdentifier("https://a")),
            SERVING,
            "URI subjectAltNames are not allowed",
        ),
    ],
)
def test_a_request_that_the_signer_refuses_fails_with_a_reason(
    stage: SigningStage, signer: str, wanted: str, usages: list[str], reason: str
) -> None:
    assert stage.failure(signing_request(signer, wanted, usages)).startswith(reason)


def test_the_legacy_signer_signs_anything() -> None:
    authority = SigningAuthority(ROOT.certificate, ROOT.key)
    parsed = x509.load_pem_x509_csr(b64decode(request(subject("any", ["system:masters"]))))
    pem = authority.sign(parsed, ["any", "code signing"], 600, now=SigningStage().clock.now(), serial=7)
    usage = x509.load_pem_x509_certificate(pem).extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert [each.dotted_string for each in usage] == ["2.5.29.37.0", "1.3.6.1.5.5.7.3.3"]


def test_changed_files_of_an_authority_are_loaded_and_invalid_ones_ignored(tmp_path: Path) -> None:
    certificate, key = tmp_path / "ca.crt", tmp_path / "ca.key"
    with pytest.raises(SettingsError):
        AuthorityFiles(certificate, key)
    certificate.write_bytes(ROOT.pem)
    key.write_bytes(ROOT.key_pem)
    files = AuthorityFiles(certificate, key)
    key.write_bytes(b"broken")
    assert files.current().certificate == ROOT.certificate
    other = make(subject("other"), is_authority=True)
    certificate.write_bytes(other.pem)
    key.write_bytes(other.key_pem)
    assert files.current().certificate == other.certificate
    certificate.write_bytes(ROOT.pem)  # with another key
    assert files.current().certificate == other.certificate


class ApprovingStage(WorkedStage):
    def __init__(self) -> None:
        self.rights: set[tuple[str, str]] = set()

        def may_ask(user: User, subresource: str) -> bool:
            return (user.name, subresource) in self.rights

        identity = Identity(lambda: ROOT.key, Path(), Path(), may_ask)
        super().__init__(lambda stage: csr_approving.build(StageIdentityContext(stage, identity), NoOptions()))

    def ask(self, who: str, signer: str = KUBELET_CLIENT_SIGNER, whose: x509.Name = NODE) -> None:
        head = {"kind": "CertificateSigningRequest", "apiVersion": "certificates.k8s.io/v1"}
        client = EngineClient(self.engine, self._run, Requester(who))
        client.create(Object.from_dict({**head, **signing_request(signer, request(whose), CLIENT)}))
        self.work()

    @property
    def message(self) -> str:
        status = self.send("GET", f"{CSRS}/one").body.get("status") or {}
        conditions = status.get("conditions") or []
        return str(conditions[0]["message"]) if conditions else ""


def test_a_bootstrapper_with_the_right_to_request_node_certificates_is_approved() -> None:
    stage = ApprovingStage()
    stage.rights = {("system:bootstrap:abcdef", "nodeclient")}
    stage.ask("system:bootstrap:abcdef")
    assert stage.message == "Auto approving kubelet client certificate after SubjectAccessReview."


def test_a_node_can_renew_only_its_own_certificate() -> None:
    stage = ApprovingStage()
    stage.rights = {("system:node:n1", "selfnodeclient"), ("system:node:n2", "selfnodeclient")}
    stage.ask("system:node:n1")
    assert stage.message == "Auto approving self kubelet client certificate after SubjectAccessReview."
    stage = ApprovingStage()
    stage.rights = {("system:node:n2", "selfnodeclient")}
    stage.ask("system:node:n2")
    assert stage.message == ""


def test_rights_granted_later_are_considered() -> None:
    stage = ApprovingStage()
    stage.ask("system:bootstrap:abcdef")
    assert stage.message == ""
    stage.rights = {("system:bootstrap:abcdef", "nodeclient")}
    stage.pass_by(1)
    assert stage.message


@pytest.mark.parametrize(
    ("signer", "whose"),
    [(CLIENT_SIGNER, NODE), (KUBELET_CLIENT_SIGNER, subject("system:node:n1", ["system:masters"]))],
)
def test_other_requests_are_not_approved(signer: str, whose: x509.Name) -> None:
    stage = ApprovingStage()
    stage.rights = {("a", "nodeclient"), ("a", "selfnodeclient")}
    stage.ask("a", signer, whose)
    assert stage.message == ""


class CleaningStage(WorkedStage):
    def __init__(self) -> None:
        super().__init__(lambda stage: csr_cleaner.build(StageContext(stage), NoOptions()))
        self.create(CSRS, signing_request(CLIENT_SIGNER, request(subject("a")), CLIENT))

    def decide(self, type_: str) -> None:
        found = self.send("GET", f"{CSRS}/one").body
        condition = {"type": type_, "status": "True", "reason": "Test"}
        path = f"{CSRS}/one/status" if type_ == "Failed" else f"{CSRS}/one/approval"
        assert self.send("PUT", path, {**found, "status": {"conditions": [condition]}}).code == 200

    def issue(self, lasts: timedelta) -> None:
        found = self.send("GET", f"{CSRS}/one").body
        now = datetime.fromtimestamp(self.clock.now() // 1_000_000, UTC)
        issued = make(subject("a"), ROOT, begins=now - timedelta(hours=1), ends=now + lasts)
        found["status"]["certificate"] = b64encode(issued.pem).decode()
        assert self.send("PUT", f"{CSRS}/one/status", found).code == 200

    def is_there_after(self, hours: float) -> bool:
        for _ in range(round(hours)):
            self.pass_by(3600)
        self.hear()
        return self.send("GET", f"{CSRS}/one").code == 200


@pytest.mark.parametrize(("decided", "stays", "goes"), [("", 23, 26), ("Denied", 0, 3), ("Failed", 0, 3)])
def test_csrs_are_deleted_after_their_retention_time(decided: str, stays: int, goes: int) -> None:
    stage = CleaningStage()
    if decided:
        stage.decide(decided)
    stage.work()
    assert stage.is_there_after(stays)
    assert not stage.is_there_after(goes - stays)


def test_an_approved_request_is_kept_until_it_is_signed() -> None:
    stage = CleaningStage()
    stage.decide("Approved")
    stage.work()
    assert stage.is_there_after(100)
    stage.issue(timedelta(days=9))
    assert not stage.is_there_after(2)
