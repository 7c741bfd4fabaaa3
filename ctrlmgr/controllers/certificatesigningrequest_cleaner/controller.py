"""The CSR cleaner: deletes certificate signing requests that no requester needs any more.

Guarantees: a request is deleted an hour after it was approved (if its certificate was issued), was denied or has
failed. A request without a decision is deleted a day after its creation, and any request is deleted when its
certificate has expired. The deletion of a request has the uid of the request as a precondition. The certificate that
was issued for a deleted request stays valid.

Source: `pkg/controller/certificates/cleaner/cleaner.go`.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterable
from typing import Final

from cryptography import x509

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key
from ctrlmgr.client import Client
from ctrlmgr.clock import Clock, parse_time
from ctrlmgr.controllers.assembly import assemble
from ctrlmgr.controllers.certificatesigningrequest_cleaner import DESCRIPTOR
from ctrlmgr.controllers.certificatesigningrequest_signing.signing_requests import CSRS, Condition, SigningRequest
from ctrlmgr.controllers.descriptor import ControllerContext, NoOptions
from ctrlmgr.errors import Conflict, NotFound
from ctrlmgr.informer import Lister
from ctrlmgr.manager import Controller, Result

_EVERY: Final = 3600.0
_HOUR: Final = 3600 * 1_000_000
_DECIDED: Final = ("Approved", "Denied", "Failed")
_ALL: Final = Key("", "all")


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


class Cleaner:
    """Checks all certificate requests once an hour, and deletes old ones."""

    def __init__(self, requests: Lister, *, clock: Clock) -> None:
        """Create a reconciler that reads the requests from the lister `requests`."""
        self._requests = requests
        self._clock = clock

    def on_start(self) -> Iterable[Key]:
        """Yield the only key of this controller, which stands for all requests."""
        return [_ALL]

    def reconcile(self, key: Key, client: Client) -> Result:
        """Delete old requests; raises the errors of `client` if a deletion fails."""
        for request in self._requests.list():
            if is_over(request, self._clock.now()):
                try:
                    client.delete(request)
                except (Conflict, NotFound):
                    continue  # The request was replaced or deleted meanwhile.
        return Result(_EVERY)


def build(context: ControllerContext, options: NoOptions) -> Controller:
    """Build the controller from its context and options."""
    return assemble(DESCRIPTOR, context, Cleaner(context.informers.informer(CSRS).lister, clock=context.clock))
