"""The ClusterTrustBundle publisher, which keeps one bundle of the signer `kubernetes.io/kube-apiserver-serving`.

Guarantees, as in Kubernetes (`pkg/controller/certificates/clustertrustbundlepublisher`):
- The bundle contains this server's certificate authority. Its name is the signer and a hash of the certificates.
- All other bundles of the signer are deleted, such as those of former certificate authorities.
- If no version of the kind is served, the controller does nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from typing import Any, Final

import structlog
from prometheus_client import Counter, Histogram

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key, Resource
from ctrlmgr.client import Client
from ctrlmgr.clock import Clock
from ctrlmgr.controllers.assembly import assemble
from ctrlmgr.controllers.clustertrustbundle_publisher import DESCRIPTOR
from ctrlmgr.controllers.descriptor import ControllerContext, NoOptions
from ctrlmgr.errors import ApiError, CtrlmgrError, NotFound
from ctrlmgr.informer import Change, Lister
from ctrlmgr.manager import Controller, Watch

log = structlog.get_logger(__name__)

BUNDLES: Final = Resource("certificates.k8s.io", "clustertrustbundles")
SIGNER: Final = "kubernetes.io/kube-apiserver-serving"
_VERSIONS: Final = ("v1beta1", "v1alpha1")
_ALL: Final = Key("", "")
"""The only key: each reconcile reads all bundles."""

SYNCS: Final = Counter(
    "clustertrustbundle_publisher_sync_total",
    "Number of syncs that occurred in cluster trust bundle publisher.",
    ["code"],
)
SECONDS: Final = Histogram(
    "clustertrustbundle_publisher_sync_duration_seconds",
    "The time it took to sync a cluster trust bundle.",
    ["code"],
    buckets=[0.001 * 2**power for power in range(15)],
)


def name_of(certificates: str) -> str:
    """Return the name of the bundle with these certificates (PEM)."""
    return f"{SIGNER.replace('/', ':')}:{sha256(certificates.encode()).hexdigest()[:24]}"


class BundlePublisher:
    """Reconciles all bundles of the signer."""

    def __init__(self, bundles: Lister, certificates: str, clock: Clock, *, is_served: bool) -> None:
        """Create a reconciler that publishes `certificates` (PEM) if the kind is served."""
        self._bundles = bundles
        self._certificates = certificates
        self._clock = clock
        self._is_served = is_served

    def on_start(self) -> Iterable[Key]:
        """Return the key, if the kind is served."""
        return (_ALL,) if self._is_served else ()

    def concerned(self, change: Change) -> Iterable[Key]:
        """Return the key if a bundle of the signer was changed."""
        return self.on_start() if _spec(change.object).get("signerName") == SIGNER else ()

    def reconcile(self, key: Key, client: Client) -> None:
        """Publish the bundle, and delete all other bundles of the signer; raises the errors of the API."""
        began, code = self._clock.monotonic(), "200"
        try:
            self._publish(client)
        except CtrlmgrError as error:
            code = str(error.code) if isinstance(error, ApiError) else "500"
            raise
        finally:
            SYNCS.labels(code).inc()
            SECONDS.labels(code).observe(self._clock.monotonic() - began)

    def _publish(self, client: Client) -> None:
        name = name_of(self._certificates)
        current = self._bundles.get(Key("", name))
        if current is None:
            client.create(_bundle(name, self._certificates))
        elif _spec(current).get("trustBundle") != self._certificates:
            client.update(current.with_field("spec", {**_spec(current), "trustBundle": self._certificates}))
        former = [each for each in self._bundles.list() if _spec(each).get("signerName") == SIGNER]
        failures = [each for each in former if each.name != name and not _deleted(each, client)]
        if failures:
            raise CtrlmgrError(f"failed to remove a cluster trust bundle: {failures[-1].name}")


def _deleted(bundle: Object, client: Client) -> bool:
    try:
        client.delete(bundle)
    except NotFound:
        pass
    except ApiError as error:
        log.warning("deleting cluster trust bundle failed", name=bundle.name, error=str(error))
        return False
    return True


def _spec(bundle: Object) -> dict[str, Any]:
    spec: dict[str, Any] = bundle.to_dict().get("spec") or {}
    return spec


def _bundle(name: str, certificates: str) -> Object:
    spec = {"signerName": SIGNER, "trustBundle": certificates}
    metadata = {"name": name}
    return Object.from_dict(
        {"apiVersion": f"{BUNDLES.group}/v1beta1", "kind": "ClusterTrustBundle", "metadata": metadata, "spec": spec}
    )


def build(context: ControllerContext, options: NoOptions) -> Controller:
    """Build the controller from its context and options."""
    bundles = context.informers.informer(BUNDLES)
    kinds = context.engine.kinds
    is_served = any(kinds.find(BUNDLES.group, version, BUNDLES.plural) is not None for version in _VERSIONS)
    publisher = BundlePublisher(bundles.lister, context.root_ca, context.clock, is_served=is_served)
    return assemble(DESCRIPTOR, context, publisher, [Watch(bundles, publisher.concerned)], reads_own_writes=True)
