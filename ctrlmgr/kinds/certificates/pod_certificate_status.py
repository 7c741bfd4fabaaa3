"""Validates the status of a PodCertificateRequest, which a signer writes once: issued, denied or failed.

An issued certificate has the requested key, and the times in the status are those of the certificate.

Source: `ValidatePodCertificateRequestStatusUpdate` of Kubernetes' `pkg/apis/certificates/validation/validation.go`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from email.utils import parseaddr
from typing import TYPE_CHECKING, Any, Final

from ctrlmgr.api.field import FieldError, Path, invalid, not_supported, required, too_long
from ctrlmgr.clock import parse_time
from ctrlmgr.engine.validation.certificate_requests import Block, blocks
from ctrlmgr.engine.validation.condition_validation import validate_conditions
from ctrlmgr.kinds.certificates.key_proofs import requested_key
from ctrlmgr.kinds.common_rules import malformed

# This import is for type checkers only, because this module loads slowly and few clients write certificates.
if TYPE_CHECKING:
    from cryptography.x509 import Certificate

ISSUED, DENIED, FAILED = "Issued", "Denied", "Failed"
STATES: Final = (ISSUED, DENIED, FAILED)
"""The types of the conditions; each of them is final."""
_LONGEST_CHAIN: Final = 100 * 1024
_STATUS: Final = Path("status")
_CHAIN = _STATUS.child("certificateChain")
_TIMES: Final = ("notBefore", "notAfter", "beginRefreshAt")
_MINUTE: Final = 60 * 1_000_000
_SKEW: Final = 5 * _MINUTE
_MARGIN: Final = 10 * _MINUTE

Status = Mapping[str, Any]


def validate_status(new: Mapping[str, Any], old: Mapping[str, Any], now: str) -> list[FieldError]:
    """Validate a changed status at the time `now` (RFC 3339); the spec is unchanged."""
    status, before = _set_fields(new.get("status") or {}), _set_fields(old.get("status") or {})
    errors = _validate_conditions(status.get("conditions") or ())
    if errors:
        return errors
    if _states(before):
        return _unchanged(status, before, "immutable after PodCertificateRequest is issued, denied, or failed")
    states = _states(status)
    if DENIED in states or FAILED in states:
        words = "non-condition status fields must be empty when denying or failing the PodCertificateRequest"
        return [malformed(_STATUS, words)] if status.keys() - {"conditions"} else []
    if ISSUED in states:
        return _first_problem(_validate_issued(status, old["spec"], now))
    words = 'status is immutable unless transitioning to "Issued", "Denied", or "Failed"'
    return _unchanged(status, before, words)


def _set_fields(status: Status) -> dict[str, Any]:
    return {name: value for name, value in status.items() if value}


def _unchanged(new: Status, old: Status, words: str) -> list[FieldError]:
    return [] if new == old else [malformed(_STATUS, words)]


def _states(status: Status) -> list[str]:
    conditions = status.get("conditions") or ()
    return [each["type"] for each in conditions if each.get("type") in STATES and each.get("status") == "True"]


def _validate_conditions(conditions: Sequence[Status]) -> list[FieldError]:
    errors, known = [], 0
    for at, each in enumerate(conditions):
        path, type_, status = _STATUS.child("conditions", f"[{at}]"), each.get("type") or "", each.get("status") or ""
        if type_ not in STATES:
            errors.append(not_supported(path.child("type"), type_, STATES))
            continue
        known += 1
        if known > 1:
            words = 'There may be at most one condition with type "Issued", "Denied", or "Failed"'
            errors.append(invalid(path.child("type"), type_, words))
        if status != "True":
            errors.append(not_supported(path.child("status"), status, ("True",)))
    return errors + validate_conditions(conditions, _STATUS.child("conditions"))


def _first_problem(steps: Iterator[list[FieldError]]) -> list[FieldError]:
    """Return the errors of the first step that has errors."""
    return next(filter(None, steps), [])


def _validate_issued(status: Status, spec: Mapping[str, Any], now: str) -> Iterator[list[FieldError]]:
    chain: str = status.get("certificateChain") or ""
    if len(chain.encode()) > _LONGEST_CHAIN:
        yield [too_long(_CHAIN, _LONGEST_CHAIN)]
        return
    found = [*blocks(chain.encode())]
    if not found:
        yield [invalid(_CHAIN, chain, "issued certificate chain must contain at least one certificate")]
        return
    first, *others = found
    if first.type != b"CERTIFICATE":
        yield [invalid(_CHAIN, chain, "issued certificate chain must consist entirely of CERTIFICATE PEM blocks")]
        return
    leaf = _certificate(first)
    if leaf is None:
        yield [invalid(_CHAIN, chain, "leaf certificate does not parse as valid X.509")]
        return
    names = [*_validate_names(leaf)]
    if leaf.public_key() != requested_key(spec):
        yield [*names, invalid(_CHAIN, chain, "leaf certificate was not issued to the requested public key")]
        return
    times = [*names, *(required(_STATUS.child(each), _presence(each)) for each in _TIMES if not status.get(each))]
    yield times
    if not times:
        yield from _validate_times(status, leaf, spec["maxExpirationSeconds"], now)
        yield [*_validate_others(others, chain)]


def _presence(field: str) -> str:
    if field == "beginRefreshAt":
        return "must be present and in the range [notbefore+10min, notafter-10min]"
    return "must be present and consistent with the issued certificate"


def _certificate(block: Block) -> Certificate | None:
    from cryptography.x509 import load_der_x509_certificate

    try:
        return load_der_x509_certificate(block.der)
    except ValueError:
        return None


def _validate_names(leaf: Certificate) -> Iterator[FieldError]:
    from cryptography.x509 import DNSName, ExtensionNotFound, RFC822Name, SubjectAlternativeName

    try:
        names = leaf.extensions.get_extension_for_class(SubjectAlternativeName).value
    except ExtensionNotFound:
        return
    for each in names.get_values_for_type(DNSName):
        if not each:
            yield invalid(_CHAIN, each, "leaf certificate should not contain empty DNSName")
        if ".." in each:
            yield invalid(_CHAIN, each, "leaf certificate's DNSName should not contain '..'")
        if each.startswith(".") or each.endswith("."):
            yield invalid(_CHAIN, each, "leaf certificate's DNSName should not start or end with '.'")
    for each in names.get_values_for_type(RFC822Name):
        if "@" not in parseaddr(each)[1]:
            yield invalid(_CHAIN, each, "leaf certificate should not contain invalid EmailAddress")


def _validate_times(status: Status, leaf: Certificate, most: int, now: str) -> Iterator[list[FieldError]]:
    begin, end, refresh = (parse_time(status[each]) for each in _TIMES)
    first, last = (int(each.timestamp()) * 1_000_000 for each in (leaf.not_valid_before_utc, leaf.not_valid_after_utc))
    if begin != first:
        yield [_wrong(status, "notBefore", "must be set to the NotBefore time encoded in the leaf certificate")]
    if abs(begin - parse_time(now)) >= _SKEW:
        yield [_wrong(status, "notBefore", "must be set to within 5 minutes of kube-apiserver's current time")]
    if end != last:
        yield [_wrong(status, "notAfter", "must be set to the NotAfter time encoded in the leaf certificate")]
    lifetime = last - first
    if lifetime < 60 * _MINUTE:
        yield [invalid(_CHAIN, lifetime * 1000, "leaf certificate lifetime must be >= 1 hour")]
    if lifetime > most * 1_000_000:
        words = f"leaf certificate lifetime must be <= spec.maxExpirationSeconds ({most})"
        yield [invalid(_CHAIN, lifetime * 1000, words)]
    if refresh < begin + _MARGIN:
        yield [_wrong(status, "beginRefreshAt", "must be at least 10 minutes after status.notBefore")]
    if refresh > end - _MARGIN:
        yield [_wrong(status, "beginRefreshAt", "must be at least 10 minutes before status.notAfter")]


def _wrong(status: Status, field: str, words: str) -> FieldError:
    return invalid(_STATUS.child(field), status[field], words)


def _validate_others(others: Sequence[Block], chain: str) -> Iterator[FieldError]:
    """Validate the certificates after the first one; the misspelled word is Kubernetes'."""
    for each in others:
        if each.type != b"CERTIFICATE":
            yield invalid(_CHAIN, chain, "issued certificate chain must consist entirely of CERTFICATE PEM blocks")
            return
        if _certificate(each) is None:
            yield invalid(_CHAIN, chain, "intermediate certificate does not parse as valid X.509")
            return
