"""Creates a certificate authority and a serving certificate at the first start, and issues client certificates.

Guarantees: private keys are written atomically with mode 0600 into a directory of mode 0700. An existing file is
overwritten only if it is a serving certificate that expires soon, or that lacks one of the server's names.
"""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from ctrlmgr.clock import Clock
from ctrlmgr.errors import SettingsError

_AUTHORITY_LIFE = timedelta(days=3650)
_SERVING_LIFE = timedelta(days=365)
_RENEW_BEFORE = timedelta(days=30)
_BACKDATED = timedelta(hours=1)
"""A new certificate is valid from this time before now on, for clients whose clock is behind the server's clock.
"""


@dataclass(frozen=True)
class Authority:
    """A certificate authority: its certificate and its key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey


@dataclass(frozen=True)
class CertificateFiles:
    """The paths of the server's certificates and keys (PEM)."""

    directory: Path
    shared: Path | None = None
    """The directory of the files that several processes share; None if no files are shared."""

    @property
    def common(self) -> Path:
        """The directory of the certificate authority, which several processes may share."""
        return self.shared or self.directory

    @property
    def authority(self) -> Path:
        """The path of the authority's certificate, with which clients and server verify each other's certificates."""
        return self.common / "ca.crt"

    @property
    def authority_key(self) -> Path:
        """The path of the authority's key."""
        return self.common / "ca.key"

    @property
    def serving(self) -> Path:
        """The path of the server's certificate."""
        return self.directory / "server.crt"

    @property
    def serving_key(self) -> Path:
        """The path of the server's key."""
        return self.directory / "server.key"


def ensure_certificates(
    directory: Path, names: Sequence[str], *, clock: Clock, shared: Path | None = None
) -> CertificateFiles:
    """Create the missing files in `directory`; the serving certificate is for `names` (host names and IP addresses).

    The files of the certificate authority are in `shared`, if this directory is given. A serving certificate from
    another authority of this server is replaced. A certificate that an administrator has provided is kept while it
    matches its key and has not expired. Raises `SettingsError` if the directory cannot be used.
    """
    files = CertificateFiles(directory, shared)
    now = datetime.fromtimestamp(clock.now() / 1_000_000, UTC)
    try:
        for each in (directory, files.common):
            each.mkdir(mode=0o700, parents=True, exist_ok=True)
        authority = ensure_authority(files, now)
        if _needs_serving(files, authority, names, now):
            _write_serving(files, authority, names, now)
    except (OSError, ValueError) as error:
        raise SettingsError(f"data_dir: the certificates in {directory} cannot be used: {error}") from error
    return files


def issue_client_certificate(
    files: CertificateFiles, user: str, groups: Sequence[str], *, clock: Clock, life: timedelta = _SERVING_LIFE
) -> tuple[bytes, bytes]:
    """Return a client certificate for `user` in `groups`, and its key, both as PEM.

    The subject's common name is the user, and each organization of the subject is a group (apiserver
    `pkg/authentication/request/x509`).
    """
    authority = _load_authority(files)
    key = ec.generate_private_key(ec.SECP256R1())
    names = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    subject = x509.Name([*names, x509.NameAttribute(NameOID.COMMON_NAME, user)])
    now = datetime.fromtimestamp(clock.now() / 1_000_000, UTC)
    builder = _builder(subject, authority.certificate.subject, key, now, life)
    usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH])
    certificate = builder.add_extension(usage, critical=False).sign(authority.key, hashes.SHA256())
    return certificate.public_bytes(serialization.Encoding.PEM), _pem(key)


def ensure_authority(files: CertificateFiles, now: datetime, common_name: str = "ctrlmgr-ca") -> Authority:
    """Return the certificate authority in these files.

    If the files are missing, create an authority with the common name `common_name`.
    """
    if files.authority.exists():
        return _load_authority(files)
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
    usage = x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=True,
        crl_sign=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
    certificate = (
        _builder(name, name, key, now, _AUTHORITY_LIFE)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    write_private(files.authority_key, _pem(key))
    write_private(files.authority, certificate.public_bytes(serialization.Encoding.PEM))
    return Authority(certificate, key)


def _load_authority(files: CertificateFiles) -> Authority:
    certificate = x509.load_pem_x509_certificate(files.authority.read_bytes())
    return Authority(certificate, _load_key(files.authority_key))


def _load_key(path: Path) -> ec.EllipticCurvePrivateKey:
    key = serialization.load_pem_private_key(path.read_bytes(), password=None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise ValueError(f"{path} is not an elliptic curve key")
    return key


def _needs_serving(files: CertificateFiles, authority: Authority, names: Sequence[str], now: datetime) -> bool:
    if not (files.serving.exists() and files.serving_key.exists()):
        return True
    certificate = x509.load_pem_x509_certificate(files.serving.read_bytes())
    key = serialization.load_pem_private_key(files.serving_key.read_bytes(), password=None)
    if key.public_key() != certificate.public_key():
        return True  # the process was killed between the two writes
    if not _is_ours(certificate, authority):
        return False  # a certificate that the administrator has provided
    alternatives = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return certificate.not_valid_after_utc - _RENEW_BEFORE < now or not set(_general_names(names)) <= set(alternatives)


def _is_ours(certificate: x509.Certificate, authority: Authority) -> bool:
    try:
        certificate.verify_directly_issued_by(authority.certificate)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def _write_serving(files: CertificateFiles, authority: Authority, names: Sequence[str], now: datetime) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "ctrlmgr")])
    identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key())
    certificate = (
        _builder(subject, authority.certificate.subject, key, now, _SERVING_LIFE)
        .add_extension(x509.SubjectAlternativeName(_general_names(names)), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(identifier, critical=False)
        .sign(authority.key, hashes.SHA256())
    )
    write_private(files.serving_key, _pem(key))
    write_private(files.serving, certificate.public_bytes(serialization.Encoding.PEM))


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, now: datetime, life: timedelta
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BACKDATED)
        .not_valid_after(now + life)
    )


def _general_names(names: Sequence[str]) -> list[x509.GeneralName]:
    return [_general_name(name) for name in dict.fromkeys(names)]


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def write_private(path: Path, data: bytes) -> None:
    """Write a file atomically; only its owner may read the file."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
