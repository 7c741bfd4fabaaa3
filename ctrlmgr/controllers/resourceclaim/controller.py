"""The resource claim controller: creates ResourceClaims from templates for pods, and deallocates unused claims.

Guarantees, as in Kubernetes (`pkg/controller/resourceclaim/controller.go`) but without support for PodGroups, whose
feature gate is off:
- For each entry of a pod that names a template, a claim is created, and the pod is its controller. The pod's status
  contains the name of this claim. The controller creates a deleted claim again. If an entry has a problem, an Event
  about the pod is recorded, and the pod's later entries wait.
- If a pod is bound to a node and the scheduler did not reserve an allocated claim for the pod, the controller reserves
  the claim.
- A pod that has ended, was replaced, or was deleted is removed from the users of its claims. When the last user is
  removed, the claim's allocation and finalizer are removed too.
- When a pod has ended, its claims from templates are deleted, even if the pod still exists.

The controller differs from Kubernetes' controller in two points. First, each write of a pod's status contains all
claims from templates. Kubernetes writes only the new claims, and server-side apply then drops the other claims from the
status. Second, no claims are created for a pod that has ended. Kubernetes' controller also does not create them again,
but for another reason: it caches its own claims for an hour.

A key of this controller consists of a namespace and the name `claim/NAME` or `pod/NAME`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import PODS, Key, Resource
from ctrlmgr.client import EngineClient
from ctrlmgr.controllers.assembly import assemble
from ctrlmgr.controllers.descriptor import ControllerContext
from ctrlmgr.controllers.events.recorder import WARNING, Recorder
from ctrlmgr.controllers.resourceclaim import DESCRIPTOR, Options
from ctrlmgr.controllers.resourceclaim.decide import (
    FINALIZER,
    POD_CLAIM,
    Claim,
    ClaimingPod,
    Consumer,
    NotCreatedError,
    PodClaim,
    claim_for,
    needs_admin_access,
    needs_reservation,
    owning_pod,
    reserved,
)
from ctrlmgr.controllers.workloads.controlled_pods import index_by_controller, is_controlled_by, owned
from ctrlmgr.errors import ApiError, CtrlmgrError, NotFound
from ctrlmgr.eventlog import EventLog
from ctrlmgr.informer import Change, Lister
from ctrlmgr.manager import Controller, Watch
from ctrlmgr.metrics import RESOURCE_CLAIM_CREATES

CLAIMS: Final = Resource("resource.k8s.io", "resourceclaims")
TEMPLATES: Final = Resource("resource.k8s.io", "resourceclaimtemplates")
MANAGER: Final = "ResourceClaimController"
"""The field manager that writes the statuses of pods."""
_POD, _CLAIM = "pod", "claim"
_BY_CLAIM: Final = "resourceClaim"
_BY_TEMPLATE: Final = "resourceClaimTemplate"


class ResourceClaims:
    """Reconciles pods and claims; the module's docstring lists the keys."""

    def __init__(self, pods: Lister, claims: Lister, templates: Lister, log: EventLog, recorder: Recorder) -> None:
        """Create a reconciler that reads objects from these caches; if the cache lacks a pod, it is read from `log`."""
        self._pods, self._claims, self._templates = pods, claims, templates
        self._log, self._recorder = log, recorder

    def reconcile(self, key: Key, client: EngineClient) -> None:
        """Reconcile a pod's claims, or a claim's users.

        Raises the errors of the API if a request fails, and `CtrlmgrError` if a pod's entry is invalid.
        """
        kind, _, name = key.name.partition("/")
        where = Key(key.namespace, name)
        if kind == _POD:
            pod = self._pods.get(where)
            found = None if pod is None else ClaimingPod.of(pod)
            if found is not None and found.may_get_claims:
                self._sync_pod(found, client)
        elif (claim := self._claims.get(where)) is not None:
            self._sync_claim(claim, client)

    def _sync_pod(self, pod: ClaimingPod, client: EngineClient) -> None:
        names: dict[str, str] = {}
        is_changed = False
        for entry in pod.claims:
            try:
                name, is_new = self._claim_of(pod, entry, client)
            except CtrlmgrError as error:
                problem = f"PodResourceClaim {entry.name}: {error}"
                self._recorder.event(pod.pod, WARNING, "FailedResourceClaimCreation", problem)
                raise
            if name is not None:
                names[entry.name] = name
            is_changed |= is_new
        if is_changed:
            client.apply(_status_of(pod.pod, names), MANAGER, force=True, subresource="status")
        if pod.is_bound:
            self._reserve(pod, client)

    def _claim_of(self, pod: ClaimingPod, entry: PodClaim, client: EngineClient) -> tuple[str | None, bool]:
        """Return the name of the claim for an entry with a template.

        The second value is True if the pod's status lacks the name.
        """
        try:
            name = pod.name_of(entry)
        except NotCreatedError:
            pass
        else:
            claim = None if name is None else self._claims.get(Key(pod.pod.namespace, name))
            if entry.resource_claim_template_name is None or name is None:
                return None, False
            if claim is not None and is_controlled_by(claim, pod.pod):
                return name, False
        for claim in owned(self._claims, pod.pod):
            if claim.annotations.get(POD_CLAIM) == entry.name:
                return claim.name, True
        return self._create(pod.pod, entry, client).name, True

    def _create(self, pod: Object, entry: PodClaim, client: EngineClient) -> Object:
        name = entry.resource_claim_template_name or ""
        template = self._templates.get(Key(pod.namespace, name))
        if template is None:
            missing = f'resourceclaimtemplate.resource.k8s.io "{name}" not found'
            raise CtrlmgrError(f'resource claim template "{name}": {missing}')
        desired = claim_for(pod, entry.name, template)
        is_admin = "true" if needs_admin_access(desired["spec"]) else "false"
        try:
            created = client.create(Object.from_dict(desired))
        except ApiError as error:
            RESOURCE_CLAIM_CREATES.labels("failure", is_admin).inc()
            # Kubernetes prints the name of the claim between these words. The name is empty, because it was not
            # generated yet.
            raise CtrlmgrError(f"create ResourceClaim : {error}") from error
        RESOURCE_CLAIM_CREATES.labels("success", is_admin).inc()
        return created

    def _reserve(self, pod: ClaimingPod, client: EngineClient) -> None:
        for entry in pod.claims:
            try:
                name = pod.name_of(entry)
            except NotCreatedError:
                return  # When the pod's status contains the name, this change of the pod triggers a reconcile.
            claim = None if name is None else self._claims.get(Key(pod.pod.namespace, name))
            if claim is None:
                if name is None:
                    continue
                return
            if entry.resource_claim_name is None and not is_controlled_by(claim, pod.pod):
                return
            if needs_reservation(claim, pod.pod):
                client.update(Object.from_dict(reserved(claim, pod.pod)), "status")

    def _sync_claim(self, claim: Object, client: EngineClient) -> None:
        consumers = claim.view(Claim).consumers
        remaining = [each for each in consumers if not self._is_gone(claim.namespace, each)]
        if len(remaining) < len(consumers):
            self._release(claim, remaining, client)
        elif not remaining and claim.is_terminating and FINALIZER in (claim.metadata.finalizers or ()):
            self._release(claim, remaining, client)
            return
        if not remaining:
            self._delete_unused(claim, client)

    def _is_gone(self, namespace: str, consumer: Consumer) -> bool:
        """Return whether a pod no longer uses a claim.

        If a user of a claim is not a pod, the user is never removed.
        """
        if not consumer.is_pod:
            return False
        key = Key(namespace, consumer.name)
        pod = self._pods.get(key) or self._log.get(PODS, key)  # The cache may lack a recent write of the scheduler.
        if pod is None or pod.uid != consumer.uid:
            return True
        found = ClaimingPod.of(pod)
        return found is not None and found.is_done

    def _release(self, claim: Object, remaining: list[Consumer], client: EngineClient) -> None:
        """Write the remaining users of a claim.

        If there are no remaining users, remove the allocation and then the scheduler's finalizer.
        """
        finalizers = claim.metadata.finalizers or []
        status = {**claim.to_dict().get("status", {})}
        status.pop("reservedFor", None)
        if remaining:
            kept = {each.uid for each in remaining}
            given = claim.to_dict()["status"]["reservedFor"]
            status["reservedFor"] = [each for each in given if each["uid"] in kept]
        elif FINALIZER in finalizers:
            status.pop("allocation", None)
        if status != claim.to_dict().get("status", {}):
            claim = client.update(claim.with_field("status", status), "status")
        if FINALIZER in finalizers and "allocation" not in status:
            left = [each for each in claim.metadata.finalizers or () if each != FINALIZER]
            with suppress(NotFound):  # If the claim is terminating, the removal of its last finalizer deletes it.
                client.update(claim.with_metadata(finalizers=left or None))

    def _delete_unused(self, claim: Object, client: EngineClient) -> None:
        """Delete an unused claim that was created from a template, if its pod exists but will never run again."""
        owner = owning_pod(claim)
        pod = None if owner is None else self._pods.get(Key(claim.namespace, owner[0]))
        if owner is None or pod is None:
            return
        found = ClaimingPod.of(pod)
        if pod.uid != owner[1] or (found is not None and found.is_done):
            client.delete(claim)

    def of_pod(self, change: Change) -> Iterator[Key]:
        """Yield the keys of the pods and claims that a changed pod affects."""
        pod = ClaimingPod.of(change.object)
        if pod is None:
            return
        is_deleted = change.new is None
        if is_deleted or pod.is_done:
            names = [*pod.names(), *filter(None, (pod.extended,))]
            yield from (_key(_CLAIM, pod.pod.namespace, each) for each in names)
        if not is_deleted:
            yield from self._pod_keys(pod)

    def _pod_keys(self, pod: ClaimingPod) -> Iterator[Key]:
        namespace = pod.pod.namespace
        if pod.work(lambda name: self._claims.get(Key(namespace, name))):
            yield _key(_POD, namespace, pod.pod.name)

    def of_claim(self, change: Change) -> Iterator[Key]:
        """Yield the key of a changed claim, and the keys of the pods that use the claim."""
        claim = change.object
        if change.new is not None:
            yield _key(_CLAIM, claim.namespace, claim.name)
        yield from self._of_index(_BY_CLAIM, claim)

    def of_template(self, change: Change) -> Iterator[Key]:
        """Yield the keys of pods that wait for a template that was created or changed."""
        if change.new is not None:
            yield from self._of_index(_BY_TEMPLATE, change.new)

    def _of_index(self, index: str, obj: Object) -> Iterator[Key]:
        for pod in self._pods.by_index(index, str(obj.key)):
            found = ClaimingPod.of(pod)
            if found is not None:
                yield from self._pod_keys(found)


def _key(kind: str, namespace: str, name: str) -> Key:
    return Key(namespace, f"{kind}/{name}")


def _status_of(pod: Object, names: dict[str, str]) -> Object:
    """Return the pod to apply, whose status contains the name of the claim for each entry."""
    statuses = [{"name": entry, "resourceClaimName": name} for entry, name in names.items()]
    metadata = {"name": pod.name, "namespace": pod.namespace}
    body: dict[str, Any] = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}
    return Object.from_dict({**body, "status": {"resourceClaimStatuses": statuses}})


def _claim_names(pod: Object) -> list[str]:
    found = ClaimingPod.of(pod)
    return [] if found is None else sorted({f"{pod.namespace}/{each}" for each in found.names()})


def _template_names(pod: Object) -> list[str]:
    found = ClaimingPod.of(pod)
    named = () if found is None else (each.resource_claim_template_name for each in found.claims)
    return sorted({f"{pod.namespace}/{each}" for each in named if each is not None})


def build(context: ControllerContext, options: Options) -> Controller:
    """Build the controller from its context and options."""
    pods, claims, templates = (context.informers.informer(each) for each in (PODS, CLAIMS, TEMPLATES))
    pods.add_index(_BY_CLAIM, _claim_names)
    pods.add_index(_BY_TEMPLATE, _template_names)
    index_by_controller(claims)
    recorder = context.recorder(DESCRIPTOR)
    reconciler = ResourceClaims(pods.lister, claims.lister, templates.lister, context.event_log, recorder)
    watches = [
        Watch(pods, reconciler.of_pod),
        Watch(claims, reconciler.of_claim),
        Watch(templates, reconciler.of_template),
    ]
    workers = options.concurrent_resourceclaim_syncs
    return assemble(DESCRIPTOR, context, reconciler, watches, workers=workers, reads_own_writes=True)
