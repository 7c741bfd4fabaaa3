"""The PodCertificateRequest cleaner: deletes requests that are older than any flow of a certificate takes.

Guarantees: every five minutes, the requests that were created 15 minutes ago or earlier are deleted.

Source: `pkg/controller/certificates/cleaner/pcrcleaner.go`.
"""

from __future__ import annotations

from typing import Final

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Resource
from ctrlmgr.clock import parse_time
from ctrlmgr.controllers.assembly import assemble
from ctrlmgr.controllers.descriptor import ControllerContext, NoOptions
from ctrlmgr.controllers.periodic_cleaner import PeriodicCleaner
from ctrlmgr.controllers.podcertificaterequest_cleaner import DESCRIPTOR
from ctrlmgr.manager import Controller

REQUESTS: Final = Resource("certificates.k8s.io", "podcertificaterequests")
_EVERY: Final = 300.0
_OLD: Final = 15 * 60 * 1_000_000


def is_over(request: Object, now: int) -> bool:
    """Return whether a request is old enough to be deleted at the time `now` (microseconds since 1970)."""
    return now >= parse_time(request.metadata.creation_timestamp or "") + _OLD


def build(context: ControllerContext, options: NoOptions) -> Controller:
    """Build the controller from its context and options."""
    requests = context.informers.informer(REQUESTS).lister
    return assemble(DESCRIPTOR, context, PeriodicCleaner(requests, is_over, every=_EVERY, clock=context.clock))
