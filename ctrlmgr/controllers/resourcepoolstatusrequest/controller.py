"""The controller of ResourcePoolStatusRequests, which reads the pools from ResourceSlices and ResourceClaims.

Guarantees, as in Kubernetes (`pkg/controller/resourcepoolstatusrequest`):
- A request without a status gets the status of its pools. A status that is set is never written again.
- If a requested pool is incomplete, the request is retried five times, and then it stays without a status.
- Every ten minutes, requests that were answered more than an hour ago are deleted, and requests without a status that
  are older than a day. The deletion of a request has the uid of the request as a precondition.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import structlog
from prometheus_client import Counter, Histogram

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key, Resource
from ctrlmgr.client import Client
from ctrlmgr.clock import Clock
from ctrlmgr.controllers.assembly import assemble
from ctrlmgr.controllers.descriptor import ControllerContext, NoOptions
from ctrlmgr.controllers.resourcepoolstatusrequest import DESCRIPTOR
from ctrlmgr.controllers.resourcepoolstatusrequest.decide import is_expired, status_of
from ctrlmgr.errors import ApiError, CtrlmgrError, NotFound
from ctrlmgr.informer import Change, Lister
from ctrlmgr.manager import Controller, Result, Watch

log = structlog.get_logger(__name__)

REQUESTS: Final = Resource("resource.k8s.io", "resourcepoolstatusrequests")
CLAIMS: Final = Resource("resource.k8s.io", "resourceclaims")
SLICES: Final = Resource("resource.k8s.io", "resourceslices")
_CLEANUP: Final = Key("", "")
"""The key of the deletion of old requests; all other keys name a request."""
_EVERY: Final = 600.0
_MAX_RETRIES: Final = 5

PROCESSED: Final = Counter(
    "resourcepoolstatusrequest_controller_requests_processed_total",
    "Total number of ResourcePoolStatusRequests processed",
    ["driver_name"],
)
ERRORS: Final = Counter(
    "resourcepoolstatusrequest_controller_request_processing_errors_total",
    "Total number of errors encountered while processing ResourcePoolStatusRequests",
    ["driver_name"],
)
SECONDS: Final = Histogram(
    "resourcepoolstatusrequest_controller_request_processing_duration_seconds",
    "Time taken to process a ResourcePoolStatusRequest",
    ["driver_name"],
    buckets=[0.001 * 2**power for power in range(15)],
)


class PoolStatusRequests:
    """Reconciles a request, or all old requests."""

    def __init__(self, requests: Lister, slices: Lister, claims: Lister, *, clock: Clock) -> None:
        """Create a reconciler that reads objects from these caches."""
        self._requests, self._slices, self._claims = requests, slices, claims
        self._clock = clock

    def on_start(self) -> Iterable[Key]:
        """Return the key of the deletion of old requests."""
        return [_CLEANUP]

    def reconcile(self, key: Key, client: Client) -> Result | None:
        """Answer a request, or delete old requests; raises `IncompletePools` and the errors of the API."""
        if key == _CLEANUP:
            return self._clean_up(client)
        request = self._requests.get(key)
        if request is not None and _is_pending(request):
            self._answer(request, client)
        return None

    def _answer(self, request: Object, client: Client) -> None:
        began, driver = self._clock.monotonic(), request.to_dict()["spec"]["driver"]
        status = status_of(request, self._slices.list(), self._claims.list(), self._clock.now())
        try:
            client.update(request.with_field("status", status), "status")
        except CtrlmgrError:
            ERRORS.labels(driver).inc()
            raise
        finally:
            PROCESSED.labels(driver).inc()
            SECONDS.labels(driver).observe(self._clock.monotonic() - began)

    def _clean_up(self, client: Client) -> Result:
        for request in self._requests.list():
            if is_expired(request, self._clock.now()):
                _delete(request, client)
        return Result(_EVERY)


def pending_key(change: Change) -> Iterable[Key]:
    """Return the key of a changed request without a status."""
    return (change.object.key,) if _is_pending(change.object) else ()


def _is_pending(request: Object) -> bool:
    return request.to_dict().get("status") is None


def _delete(request: Object, client: Client) -> None:
    try:
        client.delete(request)
    except NotFound:
        log.debug("expired request already deleted", request=str(request.key))
    except ApiError as error:
        log.warning("deleting expired request failed", request=str(request.key), error=str(error))


def build(context: ControllerContext, options: NoOptions) -> Controller:
    """Build the controller from its context and options."""
    requests, slices, claims = (context.informers.informer(each) for each in (REQUESTS, SLICES, CLAIMS))
    reconciler = PoolStatusRequests(requests.lister, slices.lister, claims.lister, clock=context.clock)
    return assemble(DESCRIPTOR, context, reconciler, [Watch(requests, pending_key)], max_retries=_MAX_RETRIES)
