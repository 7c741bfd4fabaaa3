"""Verifies client certificates against authorities, and reads the users from certificates.

Guarantees:
- A certificate is valid if a chain leads from the certificate to one of the authorities. In a valid chain, all
  signatures are valid, and the current time is within the validity period of every certificate. Every issuer in the
  chain must be allowed to sign certificates and to issue a chain of this length. Every certificate in the chain must be
  usable for client authentication.
- Chains with name constraints or unknown critical extensions are refused.
- The search for a chain is bounded: at most `MOST_CHECKS` signatures are checked. A chain never contains two
  certificates with the same subject and key, so certificates that sign each other do not increase the number of chains.

A certificate's common name becomes the user name, and each organization becomes a group (apiserver
`pkg/authentication/request/x509`). Chains are verified as Go's `crypto/x509` `Certificate.Verify` does with
`ExtKeyUsageClientAuth`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Final, NamedTuple, TypeVar

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID, ObjectIdentifier

from ctrlmgr.authentication.user import CREDENTIAL_ID, CredentialsRefused, User

_T = TypeVar("_T", bound=x509.ExtensionType)

UID_OID: Final = ObjectIdentifier("1.3.6.1.4.1.57683.2")
"""The subject attribute that contains the user's uid."""

_LONGEST: Final = 8
"""The maximum length of a chain, in certificates; chains of real authorities are shorter."""

MOST_CHECKS: Final = 100
"""The maximum number of signature checks in one search (crypto/x509 `maxChainSignatureChecks`)."""

MOST_PRESENTED: Final = 32
"""The maximum number of certificates that a client may present; if a client presents more certificates, none of them is
parsed.
"""

_LARGEST_KEY: Final = 8192
_LARGEST_EXPONENT: Final = 2**31 - 1
"""The maximum size of an RSA key in bits (crypto/tls `checkKeySize`), and the maximum bits of its exponent (crypto/rsa
`checkPub`).

The size of a key and the size of its exponent limit the cost of a signature check.
"""

_WEAK: Final = frozenset({"md5", "sha1"})
_UNDERSTOOD: Final = (
    x509.BasicConstraints,
    x509.KeyUsage,
    x509.ExtendedKeyUsage,
    x509.SubjectAlternativeName,
    x509.SubjectKeyIdentifier,
    x509.AuthorityKeyIdentifier,
)
_CLIENTS: Final = frozenset({ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE})


class Validity(NamedTuple):
    """The period in which a chain of certificates is valid, in seconds since 1970."""

    begins: float
    ends: float

    def covers(self, now: float) -> bool:
        """Return whether the validity period includes a time (seconds since 1970)."""
        return self.begins <= now <= self.ends


class VerifiedCertificate(NamedTuple):
    """A certificate with a valid chain to an authority."""

    leaf: x509.Certificate
    validity: Validity


_BLOCK = re.compile(rb"-----BEGIN CERTIFICATE-----.*?(?:-----END CERTIFICATE-----|\Z)", re.DOTALL)


def read_certificates(pem: bytes) -> list[x509.Certificate]:
    """Parse all certificates in a file.

    Raises ValueError if the file contains no certificate, or contains a malformed certificate.
    """
    found: list[x509.Certificate] = []
    for block in _BLOCK.finditer(pem):
        try:
            found.append(x509.load_pem_x509_certificate(block.group()))
        except ValueError as error:
            line = pem.count(b"\n", 0, block.start()) + 1
            raise ValueError(f"line {line}: the certificate that begins here cannot be read") from error
    if not found:
        raise ValueError("line 1: there is no certificate")
    return found


def vouch(presented: Sequence[bytes], authorities: Sequence[x509.Certificate], now: float) -> VerifiedCertificate:
    """Return the client's certificate, which is the first in `presented` (DER), with its chain to an authority.

    The chain is valid at `now`. The chain can contain the other certificates in `presented` as intermediate
    certificates. Raises `CredentialsRefused`, with the reason, if the certificate has no valid chain.
    """
    if len(presented) > MOST_PRESENTED:
        raise CredentialsRefused(f"x509: {len(presented)} certificates were presented, at most {MOST_PRESENTED} may be")
    try:
        leaf, *links = map(x509.load_der_x509_certificate, presented)
        _check_use(leaf)
        for chain in Search(leaf, links, authorities).chains([leaf]):
            if (validity := _validity(chain)).covers(now):
                return VerifiedCertificate(leaf, validity)
    except (ValueError, UnsupportedAlgorithm) as error:
        raise CredentialsRefused(f"x509: malformed certificate: {error}") from error
    if not _validity([leaf]).covers(now):
        raise CredentialsRefused(_failed(leaf, "x509: certificate has expired or is not yet valid"))
    raise CredentialsRefused(_failed(leaf, "x509: certificate signed by unknown authority"))


def certificate_user(leaf: x509.Certificate) -> User | None:
    """Return the user that a certificate names, or None if the certificate names no user.

    Raises `CredentialsRefused` if the uid is invalid.
    """
    attributes = [attribute for names in leaf.subject.rdns for attribute in names]
    common = [_text(each) for each in attributes if each.oid == NameOID.COMMON_NAME]
    if not common or not common[-1]:
        return None
    groups = tuple(_text(each) for each in attributes if each.oid == NameOID.ORGANIZATION_NAME)
    digest = sha256(leaf.public_bytes(Encoding.DER)).hexdigest()
    uid = _uid([_text(each) for each in attributes if each.oid == UID_OID])
    return User(common[-1], uid, groups, {CREDENTIAL_ID: (f"X509SHA256={digest}",)})


def check_name(leaf: x509.Certificate, allowed: Sequence[str]) -> None:
    """Raise `CredentialsRefused` if a certificate's common name is not in `allowed`.

    An empty `allowed` allows all names.
    """
    names = [_text(each) for each in leaf.subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
    name = names[-1] if names else ""
    if allowed and name not in allowed:
        raise CredentialsRefused(f"x509: subject with cn={name} is not in the allowed list")


def _uid(uids: Sequence[str]) -> str:
    if len(uids) > 1:
        raise CredentialsRefused(f"expected 1 UID, but found multiple: [{' '.join(uids)}]")
    if uids and not uids[0]:
        raise CredentialsRefused("UID cannot be an empty string")
    return uids[0] if uids else ""


class Search:
    """The search for chains from one certificate to the authorities, with a limited number of signature checks."""

    def __init__(
        self, leaf: x509.Certificate, links: Sequence[x509.Certificate], authorities: Sequence[x509.Certificate]
    ) -> None:
        """Create a search from `leaf` to one of `authorities`.

        `links` are the certificates that may be between the two.
        """
        self._leaf = leaf
        self._links = [link for link in links if _is_authority(link)]
        self._authorities = authorities
        self.checks_left = MOST_CHECKS

    def chains(self, chain: list[x509.Certificate]) -> Iterator[list[x509.Certificate]]:
        """Yield every chain that begins with the certificates in `chain` and ends with an authority."""
        last = chain[-1]
        if len(chain) == 1 and last in self._authorities:
            yield chain
        for authority in self._authorities:
            if self._continues(chain, authority):
                yield [*chain, authority]
        if len(chain) >= _LONGEST:
            return
        for link in self._links:
            if self._continues(chain, link):
                yield from self.chains([*chain, link])

    def _continues(self, chain: Sequence[x509.Certificate], issuer: x509.Certificate) -> bool:
        """Return whether `issuer` can follow in the chain.

        The issuer must be new to the chain, must have signed the last certificate of the chain, and must be allowed to
        sign certificates.
        """
        last = chain[-1]
        digest = last.signature_hash_algorithm
        if last.issuer != issuer.subject or (digest is not None and digest.name in _WEAK):
            return False
        if any(_is_same_signer(each, issuer) for each in chain) or not _may_issue(issuer, len(chain) - 1):
            return False
        return self._has_signed(issuer, last)

    def _has_signed(self, issuer: x509.Certificate, certificate: x509.Certificate) -> bool:
        if self.checks_left == 0:
            words = "x509: signature check attempts limit reached while verifying certificate chain"
            raise CredentialsRefused(_failed(self._leaf, words))
        self.checks_left -= 1
        try:
            certificate.verify_directly_issued_by(issuer)
        except (ValueError, TypeError, InvalidSignature, UnsupportedAlgorithm):
            return False
        return True


def _is_same_signer(one: x509.Certificate, other: x509.Certificate) -> bool:
    """Return whether two certificates have the same subject, key and alternative names.

    Source: crypto/x509 `alreadyInChain`.
    """
    if one.subject != other.subject or one.public_key() != other.public_key():
        return False
    return _extension(one, x509.SubjectAlternativeName) == _extension(other, x509.SubjectAlternativeName)


def _is_authority(certificate: x509.Certificate) -> bool:
    constraints = _extension(certificate, x509.BasicConstraints)
    return constraints is not None and constraints.ca


def _may_issue(issuer: x509.Certificate, links: int) -> bool:
    constraints = _extension(issuer, x509.BasicConstraints)
    if constraints is None:
        if issuer.version is x509.Version.v3:
            return False
    elif not constraints.ca or (constraints.path_length is not None and links > constraints.path_length):
        return False
    usage = _extension(issuer, x509.KeyUsage)
    if usage is not None and not usage.key_cert_sign:
        return False
    return _is_for_clients(issuer) and _is_understood(issuer) and _has_moderate_key(issuer)


def _has_moderate_key(issuer: x509.Certificate) -> bool:
    key = issuer.public_key()
    if not isinstance(key, RSAPublicKey):
        return True
    return key.key_size <= _LARGEST_KEY and key.public_numbers().e <= _LARGEST_EXPONENT


def _check_use(leaf: x509.Certificate) -> None:
    if not _is_understood(leaf):
        raise CredentialsRefused(_failed(leaf, "x509: unhandled critical extension"))
    if not _is_for_clients(leaf):
        raise CredentialsRefused(_failed(leaf, "x509: certificate specifies an incompatible key usage"))


def _is_for_clients(certificate: x509.Certificate) -> bool:
    usage = _extension(certificate, x509.ExtendedKeyUsage)
    return usage is None or not _CLIENTS.isdisjoint(usage)


def _is_understood(certificate: x509.Certificate) -> bool:
    return all(
        isinstance(each.value, _UNDERSTOOD) or not (each.critical or isinstance(each.value, x509.NameConstraints))
        for each in certificate.extensions
    )


def _extension(certificate: x509.Certificate, kind: type[_T]) -> _T | None:
    try:
        return certificate.extensions.get_extension_for_class(kind).value
    except x509.ExtensionNotFound:
        return None


def _validity(chain: Sequence[x509.Certificate]) -> Validity:
    begins = max(each.not_valid_before_utc.timestamp() for each in chain)
    return Validity(begins, min(each.not_valid_after_utc.timestamp() for each in chain))


def _failed(leaf: x509.Certificate, words: str) -> str:
    subject_key = _extension(leaf, x509.SubjectKeyIdentifier)
    authority_key = _extension(leaf, x509.AuthorityKeyIdentifier)
    skid = _hex(subject_key.digest if subject_key is not None else b"")
    akid = _hex((authority_key.key_identifier or b"") if authority_key is not None else b"")
    return f"verifying certificate SN={leaf.serial_number}, SKID={skid}, AKID={akid} failed: {words}"


def _hex(data: bytes) -> str:
    return data.hex(":").upper()


def _text(attribute: x509.NameAttribute[str | bytes]) -> str:
    value = attribute.value
    return value if isinstance(value, str) else value.decode("utf-8", "replace")
