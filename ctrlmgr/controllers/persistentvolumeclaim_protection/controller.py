"""The PersistentVolumeClaim protection controller: delays the deletion of a claim while a pod uses it.

Guarantees, as in Kubernetes (`pkg/controller/volume/pvcprotection/pvc_protection_controller.go`):
- A pod that is bound to a node uses its claims until the pod is deleted. Pods that have ended also count, because their
  volumes may still be mounted. When a pod is being deleted with grace period 0, the pod no longer uses the claims of
  its ephemeral volumes.
- A pod without a node does not use a terminating claim, because no kubelet will start it.

Before Kubernetes releases a claim, it reads all pods from the API server, because its cache of pods may be older than
its cache of claims. In ctrlmgr, all caches are at the same revision. If the caches contain the deletion of a claim,
they also contain all earlier bindings of pods.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ctrlmgr.api.core import Pod
from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import PODS, Key, Resource
from ctrlmgr.controllers.assembly import assemble
from ctrlmgr.controllers.claims_of_pods import claims_of, index_by_claim, pods_of_claim
from ctrlmgr.controllers.descriptor import ControllerContext, NoOptions
from ctrlmgr.controllers.persistentvolumeclaim_protection import DESCRIPTOR
from ctrlmgr.controllers.protection import Protector
from ctrlmgr.controllers.workloads.controlled_pods import is_controlled_by
from ctrlmgr.informer import Change
from ctrlmgr.manager import Controller, Watch

CLAIMS: Final = Resource("", "persistentvolumeclaims")
FINALIZER: Final = "kubernetes.io/pvc-protection"


def uses(pod: Object, claim: Object) -> bool:
    """Return whether a pod uses a claim, so that the claim must not be deleted before the pod."""
    if not pod.view(Pod).spec.node_name:
        return False
    for each in claims_of(pod):
        if each.name == claim.name and not (each.is_ephemeral and (_is_shut_down(pod) or not _is_for(pod, claim))):
            return True
    return False


def _is_for(pod: Object, claim: Object) -> bool:
    return is_controlled_by(claim, pod)


def _is_shut_down(pod: Object) -> bool:
    return pod.is_terminating and pod.metadata.deletion_grace_period_seconds == 0


def released_by(change: Change) -> Iterator[Key]:
    """Yield the claims that may no longer be used because a pod was deleted, has ended, or has no node."""
    pods = [change.object]
    if change.old is not None and change.new is not None and change.old.uid != change.new.uid:
        pods.append(change.old)
    for pod in pods:
        is_gone = pod is not change.new
        if is_gone or pod.view(Pod).is_terminal or not pod.view(Pod).spec.node_name or _is_shut_down(pod):
            yield from (Key(pod.namespace, each.name) for each in claims_of(pod))


def build(context: ControllerContext, options: NoOptions) -> Controller:
    """Build the controller from its context and options."""
    claims, pods = context.informers.informer(CLAIMS), context.informers.informer(PODS)
    index_by_claim(pods)
    lister = pods.lister

    def is_used(claim: Object) -> bool:
        return any(uses(pod, claim) for pod in pods_of_claim(lister, claim.key))

    protector = Protector(claims.lister, FINALIZER, is_used)
    return assemble(DESCRIPTOR, context, protector, [Watch(claims, protector.concerned), Watch(pods, released_by)])
