"""A certificate authority that signs certificates as Kubernetes' certificate authority does.

Guarantees:
- The validity of a certificate begins five minutes before it is signed, for clients with slow clocks, and never exceeds
  that of the authority's own certificate.
- Only the key and the names that Kubernetes supports are copied from a request. Extensions, and subject attributes that
  are not in Go's `pkix.Name`, in a request are ignored.

Source: `pkg/controller/certificates/authority/{authority,policies}.go`, Go's `crypto/x509` and `crypto/x509/pkix`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID, ObjectIdentifier

from ctrlmgr.authentication.x509_verification import read_certificates
from ctrlmgr.controllers.certificatesigningrequest_signing.signing_requests import alternative_names

_BACKDATED: Final = timedelta(minutes=5)
_SHORT: Final = timedelta(hours=8)
"""Only the start of a certificate's validity is backdated; the end of the validity stays the same."""

SERIAL_BITS: Final = 128
"""The number of random bits in a serial number."""

_KEY_USAGES: Final = {
    "signing": "digital_signature",
    "digital signature": "digital_signature",
    "content commitment": "content_commitment",
    "key encipherment": "key_encipherment",
    "data encipherment": "data_encipherment",
    "key agreement": "key_agreement",
    "cert sign": "key_cert_sign",
    "crl sign": "crl_sign",
    "encipher only": "encipher_only",
    "decipher only": "decipher_only",
}
_EXTENDED: Final = {
    "any": ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE,
    "server auth": ExtendedKeyUsageOID.SERVER_AUTH,
    "client auth": ExtendedKeyUsageOID.CLIENT_AUTH,
    "code signing": ExtendedKeyUsageOID.CODE_SIGNING,
    "email protection": ExtendedKeyUsageOID.EMAIL_PROTECTION,
    "s/mime": ExtendedKeyUsageOID.EMAIL_PROTECTION,
    "ipsec end system": ObjectIdentifier("1.3.6.1.5.5.7.3.5"),
    "ipsec tunnel": ObjectIdentifier("1.3.6.1.5.5.7.3.6"),
    "ipsec user": ObjectIdentifier("1.3.6.1.5.5.7.3.7"),
    "timestamping": ExtendedKeyUsageOID.TIME_STAMPING,
    "ocsp signing": ExtendedKeyUsageOID.OCSP_SIGNING,
    "microsoft sgc": ObjectIdentifier("1.3.6.1.4.1.311.10.3.3"),
    "netscape sgc": ObjectIdentifier("2.16.840.1.113730.4.1"),
}
"""The subject attributes are listed in the order in which Go encodes them."""

_SUBJECT: Final = (
    NameOID.COUNTRY_NAME,
    NameOID.ORGANIZATION_NAME,
    NameOID.ORGANIZATIONAL_UNIT_NAME,
    NameOID.LOCALITY_NAME,
    NameOID.STATE_OR_PROVINCE_NAME,
    NameOID.STREET_ADDRESS,
    NameOID.POSTAL_CODE,
    NameOID.COMMON_NAME,
    NameOID.SERIAL_NUMBER,
)
_ONE_OF_A_KIND: Final = (NameOID.COMMON_NAME, NameOID.SERIAL_NUMBER)
_NAMES: Final = (x509.DNSName, x509.RFC822Name, x509.IPAddress, x509.UniformResourceIdentifier)


class SigningAuthority:
    """A certificate authority's certificate and key."""

    def __init__(self, certificate: x509.Certificate, key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey) -> None:
        """Create an authority that signs with `key`; raises ValueError if `key` does not match `certificate`."""
        if key.public_key() != certificate.public_key():
            raise ValueError("the key does not belong to the certificate")
        self.certificate = certificate
        self._key = key

    @classmethod
    def read(cls, certificate: bytes, key: bytes) -> SigningAuthority:
        """Parse the certificate and key from PEM.

        Raises ValueError if the certificate or key is unusable for signing.
        """
        try:
            private = load_pem_private_key(key, password=None)
        except (TypeError, ValueError) as error:
            raise ValueError("the key file has no private key that can be read") from error
        if not isinstance(private, rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey):
            raise ValueError("the key is neither RSA nor ECDSA")
        found = read_certificates(certificate)
        return cls(found[0], private)

    def sign(
        self, request: x509.CertificateSigningRequest, usages: Collection[str], seconds: int, *, now: int, serial: int
    ) -> bytes:
        """Return a certificate (PEM) that is valid for `seconds` from `now` (microseconds since 1970).

        The number `serial` has `SERIAL_BITS` random bits. Raises ValueError if the certificate authority has expired,
        or if a usage is unknown.
        """
        if not request.is_signature_valid:
            raise ValueError("the request is not signed with its own key")
        begins, ends = self._life(datetime.fromtimestamp(now // 1_000_000, UTC), timedelta(seconds=seconds))
        key = request.public_key()
        if not isinstance(key, rsa.RSAPublicKey | ec.EllipticCurvePublicKey | ed25519.Ed25519PublicKey):
            raise ValueError("the signer does not support this type of key")
        builder = (
            x509.CertificateBuilder()
            .subject_name(_subject(request.subject))
            .issuer_name(self.certificate.subject)
            .public_key(key)
            .serial_number(serial or 1)
            .not_valid_before(begins)
            .not_valid_after(ends)
        )
        for extension, critical in self._extensions(request, usages):
            builder = builder.add_extension(extension, critical=critical)
        return builder.sign(self._key, hashes.SHA256()).public_bytes(Encoding.PEM)

    def _life(self, now: datetime, life: timedelta) -> tuple[datetime, datetime]:
        end = self.certificate.not_valid_after_utc
        if now >= end:
            raise ValueError(f"the signer has expired: NotAfter={end}")
        lasts = life if life < _SHORT else life - _BACKDATED
        return now - _BACKDATED, min(now + lasts, end)

    def _extensions(
        self, request: x509.CertificateSigningRequest, usages: Collection[str]
    ) -> list[tuple[x509.ExtensionType, bool]]:
        """Return the certificate's extensions in Go's order, and whether each is critical."""
        found: list[tuple[x509.ExtensionType, bool]] = []
        key_usage, extended = _usages(usages)
        if key_usage is not None:
            found.append((key_usage, True))
        if extended:
            found.append((x509.ExtendedKeyUsage(extended), False))
        found.append((x509.BasicConstraints(ca=False, path_length=None), True))
        try:
            own = self.certificate.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
            found.append((x509.AuthorityKeyIdentifier(own.digest, None, None), False))
        except x509.ExtensionNotFound:
            pass
        names = sorted(
            (each for each in alternative_names(request) if isinstance(each, _NAMES)),
            key=lambda each: _NAMES.index(type(each)),
        )
        if names:
            found.append((x509.SubjectAlternativeName(names), not list(request.subject)))
        return found


def _usages(usages: Collection[str]) -> tuple[x509.KeyUsage | None, list[ObjectIdentifier]]:
    unknown = [each for each in usages if each not in _KEY_USAGES and each not in _EXTENDED]
    if unknown:
        raise ValueError(f"unrecognized usage values: {unknown}")
    desired = {_KEY_USAGES[each] for each in usages if each in _KEY_USAGES}
    extended = list(dict.fromkeys(oid for name, oid in _EXTENDED.items() if name in usages))
    if not desired:
        return None, extended
    # X.509 allows `encipher_only` and `decipher_only` only together with key agreement.
    if "key_agreement" not in desired:
        desired -= {"encipher_only", "decipher_only"}
    return x509.KeyUsage(**{name: name in desired for name in dict.fromkeys(_KEY_USAGES.values())}), extended


def _subject(subject: x509.Name) -> x509.Name:
    """Return a subject in Go's encoding: the known attributes in Go's order, grouped by type."""
    names: list[x509.RelativeDistinguishedName] = []
    for oid in _SUBJECT:
        attributes: Sequence[x509.NameAttribute[str | bytes]] = subject.get_attributes_for_oid(oid)
        if oid in _ONE_OF_A_KIND:
            attributes = attributes[-1:]
        unique = {each.value: each for each in attributes}
        if unique:
            names.append(x509.RelativeDistinguishedName(unique.values()))
    return x509.Name(names)
