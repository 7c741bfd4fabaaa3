"""The PodCertificateRequest cleaner: deletes requests that are older than any flow of a certificate takes.

Guarantees: every five minutes, the requests that were created 15 minutes ago or earlier are deleted. The deletion of a
request has the uid of the request as a precondition. If a deletion fails, the other requests are deleted nevertheless.

Source: `pkg/controller/certificates/cleaner/pcrcleaner.go`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import structlog

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key, Resource
from ctrlmgr.client import Client
from ctrlmgr.clock import Clock, parse_time
from ctrlmgr.controllers.assembly import assemble
from ctrlmgr.controllers.descriptor import ControllerContext, NoOptions
from ctrlmgr.controllers.podcertificaterequest_cleaner import DESCRIPTOR
from ctrlmgr.errors import ApiError, NotFound
from ctrlmgr.informer import Lister
from ctrlmgr.manager import Controller, Result

log = structlog.get_logger(__name__)

REQUESTS: Final = Resource("certificates.k8s.io", "podcertificaterequests")
_EVERY: Final = 300.0
_OLD: Final = 15 * 60 * 1_000_000
_ALL: Final = Key("", "all")


class PodRequestCleaner:
    """Checks all requests every five minutes, and deletes old ones."""

    def __init__(self, requests: Lister, *, clock: Clock) -> None:
        """Create a reconciler that reads the requests from the lister `requests`."""
        self._requests = requests
        self._clock = clock

    def on_start(self) -> Iterable[Key]:
        """Return the only key of this controller, which stands for all requests."""
        return [_ALL]

    def reconcile(self, key: Key, client: Client) -> Result:
        """Delete old requests."""
        for request in self._requests.list():
            if self._clock.now() >= parse_time(request.metadata.creation_timestamp or "") + _OLD:
                _delete(request, client)
        return Result(_EVERY)


def _delete(request: Object, client: Client) -> None:
    try:
        client.delete(request)
    except NotFound:
        log.debug("pod certificate request already deleted", request=str(request.key))
    except ApiError as error:
        log.warning("deleting pod certificate request failed", request=str(request.key), error=str(error))


def build(context: ControllerContext, options: NoOptions) -> Controller:
    """Build the controller from its context and options."""
    requests = context.informers.informer(REQUESTS)
    return assemble(DESCRIPTOR, context, PodRequestCleaner(requests.lister, clock=context.clock))
