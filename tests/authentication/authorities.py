"""Creates certificate authorities and certificates for tests, both valid and invalid."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID, ObjectIdentifier

from ctrlmgr.authentication.x509_verification import UID_OID

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
CLIENT = ExtendedKeyUsageOID.CLIENT_AUTH
SERVER = ExtendedKeyUsageOID.SERVER_AUTH


class CertificateAndKey(NamedTuple):
    """A certificate and the private key of the certificate."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @property
    def der(self) -> bytes:
        return self.certificate.public_bytes(Encoding.DER)

    @property
    def pem(self) -> bytes:
        return self.certificate.public_bytes(Encoding.PEM)

    @property
    def key_pem(self) -> bytes:
        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def subject(
    name: str | None, groups: Sequence[str] = (), uids: Sequence[str] = (), names: Sequence[str] = ()
) -> x509.Name:
    attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    attributes += [x509.NameAttribute(UID_OID, uid, _validate=False) for uid in uids]
    attributes += [x509.NameAttribute(NameOID.COMMON_NAME, each) for each in names]
    attributes += [] if name is None else [x509.NameAttribute(NameOID.COMMON_NAME, name)]
    return x509.Name(attributes)


def make(
    whose: x509.Name,
    issuer: CertificateAndKey | None = None,
    *,
    usages: Sequence[ObjectIdentifier] | None = (CLIENT,),
    is_authority: bool = False,
    path_length: int | None = None,
    begins: datetime = NOW - timedelta(days=1),
    ends: datetime = NOW + timedelta(days=1),
    more: Sequence[tuple[x509.ExtensionType, bool]] = (),
    key: ec.EllipticCurvePrivateKey | None = None,
) -> CertificateAndKey:
    key = key or ec.generate_private_key(ec.SECP256R1())
    builder = (
        x509.CertificateBuilder()
        .subject_name(whose)
        .issuer_name(issuer.certificate.subject if issuer else whose)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begins)
        .not_valid_after(ends)
        .add_extension(x509.BasicConstraints(is_authority, path_length), critical=True)
    )
    if usages is not None and not is_authority:
        builder = builder.add_extension(x509.ExtendedKeyUsage(usages), critical=False)
    for extension, critical in more:
        builder = builder.add_extension(extension, critical=critical)
    return CertificateAndKey(builder.sign(issuer.key if issuer else key, hashes.SHA256()), key)


def authority(
    name: str = "an authority", issuer: CertificateAndKey | None = None, path_length: int | None = None
) -> CertificateAndKey:
    return make(subject(name), issuer, is_authority=True, path_length=path_length)
