"""The CSR cleaner: deletes certificate signing requests that no requester needs any more.

Guarantees: a request is deleted an hour after it was approved (if its certificate was issued), was denied or has
failed. A request without a decision is deleted a day after its creation, and any request is deleted when its
certificate has expired. The certificate that was issued for a deleted request stays valid.

Source: `pkg/controller/certificates/cleaner/cleaner.go`.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterable
from typing import Final

from cryptography import x509

from ctrlmgr.api.object import Object
from ctrlmgr.clock import parse_time
from ctrlmgr.controllers.assembly import assemble
from ctrlmgr.controllers.certificatesigningrequest_cleaner import DESCRIPTOR
from ctrlmgr.controllers.certificatesigningrequest_signing.signing_requests import CSRS, Condition, SigningRequest
from ctrlmgr.controllers.descriptor import ControllerContext, NoOptions
from ctrlmgr.controllers.periodic_cleaner import PeriodicCleaner
from ctrlmgr.manager import Controller

_EVERY: Final = 3600.0
_HOUR: Final = 3600 * 1_000_000
_DECIDED: Final = ("Approved", "Denied", "Failed")


def is_over(request: Object, now: int) -> bool:
    """Return whether a request is old enough to be deleted at the time `now` (microseconds since 1970)."""
    view = request.view(SigningRequest)
    conditions, certificate = view.status.conditions, view.status.certificate
    if not conditions:
        return _is_older(request.metadata.creation_timestamp, 24 * _HOUR, now)
    for each in conditions:
        if each.type == "Approved" and not certificate:
            continue
        if each.type in _DECIDED and _is_older(each.last_update_time, _HOUR, now):
            return True
    return _is_approved(conditions) and bool(certificate) and _has_expired(b64decode(certificate), now)


def _is_approved(conditions: Iterable[Condition]) -> bool:
    return any(each.type == "Approved" for each in conditions)


def _has_expired(certificates: bytes, now: int) -> bool:
    try:
        found = x509.load_pem_x509_certificates(certificates)
    except ValueError:
        return False
    return found[0].not_valid_after_utc.timestamp() * 1_000_000 < now


def _is_older(moment: str | None, than: int, now: int) -> bool:
    return moment is not None and now - parse_time(moment) > than


def build(context: ControllerContext, options: NoOptions) -> Controller:
    """Build the controller from its context and options."""
    requests = context.informers.informer(CSRS).lister
    return assemble(DESCRIPTOR, context, PeriodicCleaner(requests, is_over, every=_EVERY, clock=context.clock))
