"""The ephemeral volume controller: creates a claim for each ephemeral volume of a pod, and owns it by the pod.

Guarantees, as in Kubernetes (`pkg/controller/volume/ephemeral/controller.go`): the claim's name is `POD-VOLUME`, and
the pod owns the claim. If a claim with that name already exists and has another owner, the controller does not change
that claim. The controller records an Event about this claim, and creates no claims for the pod's later volumes. A claim
that is deleted while its pod exists is created again. The controller creates no claims for terminating pods.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import PODS, Key
from ctrlmgr.client import EngineClient
from ctrlmgr.controllers.assembly import assemble
from ctrlmgr.controllers.claims_of_pods import claims_of, index_by_claim, pods_of_claim
from ctrlmgr.controllers.descriptor import ControllerContext
from ctrlmgr.controllers.ephemeral_volume import DESCRIPTOR, Options
from ctrlmgr.controllers.events.recorder import WARNING, Recorder
from ctrlmgr.controllers.persistentvolumeclaim_protection.controller import CLAIMS
from ctrlmgr.controllers.workloads.controlled_pods import is_controlled_by
from ctrlmgr.errors import ApiError, CtrlmgrError
from ctrlmgr.informer import Change, Lister
from ctrlmgr.manager import Controller, Watch


def claim_for(pod: Mapping[str, Any], volume: Mapping[str, Any]) -> dict[str, Any]:
    """Return the claim of an ephemeral volume of a pod."""
    meta, template = pod["metadata"], volume["ephemeral"]["volumeClaimTemplate"]
    given = {key: each for key, each in (template.get("metadata") or {}).items() if key in ("annotations", "labels")}
    owner = {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": meta["name"],
        "uid": meta["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    name = f"{meta['name']}-{volume['name']}"
    metadata = {"name": name, "namespace": meta["namespace"], **given, "ownerReferences": [owner]}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": template["spec"]}


class EphemeralVolumes:
    """Reconciles the ephemeral volumes of a pod."""

    def __init__(self, pods: Lister, claims: Lister, recorder: Recorder) -> None:
        """Create a reconciler that reads objects from these caches.

        Pods are indexed by the claims of their ephemeral volumes.
        """
        self._pods, self._claims, self._recorder = pods, claims, recorder

    def reconcile(self, key: Key, client: EngineClient) -> None:
        """Create the missing claims.

        Raises the errors of the API if a request fails, and an error if a claim has another owner.
        """
        pod = self._pods.get(key)
        if pod is None or pod.is_terminating:
            return
        fields = pod.to_dict()
        for volume in fields["spec"].get("volumes") or ():
            if volume.get("ephemeral") is not None:
                self._see_to(pod, fields, volume, client)

    def _see_to(self, pod: Object, fields: Mapping[str, Any], volume: Mapping[str, Any], client: EngineClient) -> None:
        desired = claim_for(fields, volume)
        key = Key(pod.namespace, desired["metadata"]["name"])
        found = self._claims.get(key)
        if found is not None:
            if not is_controlled_by(found, pod):
                problem = f"PVC {key} was not created for pod {pod.key} (pod is not owner)"
                self._tell(pod, volume, problem)
                raise CtrlmgrError(problem)  # The pod's other volumes wait, as in Kubernetes.
            return
        try:
            client.create(Object.from_dict(desired))
        except ApiError as error:
            self._tell(pod, volume, f"create PVC {key.name}: {error}")
            raise

    def _tell(self, pod: Object, volume: Mapping[str, Any], problem: str) -> None:
        self._recorder.event(pod, WARNING, "FailedBinding", f"ephemeral volume {volume['name']}: {problem}")

    def claim_keys(self, change: Change) -> Iterator[Key]:
        """Yield the keys of the pods that use a deleted claim, because the claim may have to be created again."""
        if change.new is None:
            yield from (each.key for each in pods_of_claim(self._pods, change.object.key))


def pod_keys(change: Change) -> Iterator[Key]:
    """Yield the key of a new pod with ephemeral volumes; the volumes of a pod cannot change later."""
    pod = change.new
    if pod is None or pod.is_terminating or (change.old is not None and change.old.uid == pod.uid):
        return
    if any(each.is_ephemeral for each in claims_of(pod)):
        yield pod.key


def build(context: ControllerContext, options: Options) -> Controller:
    """Build the controller from its context and options."""
    claims, pods = context.informers.informer(CLAIMS), context.informers.informer(PODS)
    index_by_claim(pods)
    reconciler = EphemeralVolumes(pods.lister, claims.lister, context.recorder(DESCRIPTOR))
    watches = [Watch(pods, pod_keys), Watch(claims, reconciler.claim_keys)]
    return assemble(DESCRIPTOR, context, reconciler, watches, workers=options.concurrent_ephemeralvolume_syncs)
