"""Performs steps on the pods and claims of a StatefulSet, and records Events.

Guarantees, as in Kubernetes (`pkg/controller/statefulset/stateful_pod_control.go`): a pod's claims are created before
the pod. An Event about the StatefulSet is recorded for each creation, change and deletion of a pod or claim, and for
each failure.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from ctrlmgr.api.object import Object
from ctrlmgr.authorization.authorizer import aggregate
from ctrlmgr.client import EngineClient
from ctrlmgr.controllers.events.recorder import NORMAL, WARNING, Recorder
from ctrlmgr.controllers.statefulset.decide import GetClaim, PodAction, Step
from ctrlmgr.controllers.statefulset.identity import claim_name, identified, new_claims, ordinal_of
from ctrlmgr.controllers.statefulset.retention import has_unexpected_controller, is_up_to_date, with_owner
from ctrlmgr.controllers.statefulset.view import StatefulSet
from ctrlmgr.errors import AlreadyExists, ApiError, InternalError, NotFound


class StatefulPodControl:
    """The writes for one StatefulSet during one reconcile."""

    def __init__(self, stateful_set: Object, claim: GetClaim, client: EngineClient, recorder: Recorder) -> None:
        """Create an instance that writes through `client`; `claim` looks up claims, and `recorder` records Events."""
        self._set = stateful_set
        self._claim = claim
        self._client = client
        self._recorder = recorder
        self.replaced = 0
        """The number of pods that were deleted because of their revision."""

    def do(self, step: Step) -> None:
        """Perform the actions of a step; raises the errors of the API if a request fails."""
        for act in step.acts:
            self._acts[act](self, step.pod)

    def _create(self, pod: Object) -> None:
        try:
            self._create_claims(pod)
            self._client.create(pod)
        except AlreadyExists:
            raise
        except ApiError as error:
            self._tell("Create", pod, error)
            raise
        try:
            self._hand_over(pod)
        except ApiError as error:
            self._tell("Update", pod, error)
            raise
        self._tell("Create", pod)

    def _delete(self, pod: Object) -> None:
        try:
            self._client.delete(pod)
        except NotFound:
            return
        except ApiError as error:
            self._tell("Delete", pod, error)
            raise
        self._tell("Delete", pod)

    def _replace(self, pod: Object) -> None:
        self._delete(pod)
        self.replaced += 1

    def _update(self, pod: Object) -> None:
        try:
            self._create_claims(pod)
            self._hand_over(pod)
            self._client.update(identified(self._set, pod))
        except ApiError as error:
            self._tell("Update", pod, error)
            raise
        self._tell("Update", pod)

    def _supply(self, pod: Object) -> None:
        self._create_claims(pod)
        self._hand_over(pod)

    def _create_claims(self, pod: Object) -> None:
        """Create a pod's missing claims.

        The method attempts to create each claim. If an attempt failed, the method raises `InternalError` with the
        errors of all failed attempts.
        """
        problems = []
        for desired in new_claims(self._set, ordinal_of(pod)):
            current = self._claim(desired.name)
            if current is None:
                problems += self._create_claim(pod, desired)
            elif current.is_terminating:
                problems.append(f"pvc {desired.name} is being deleted")
        if problems:
            raise InternalError(aggregate(problems))

    def _create_claim(self, pod: Object, desired: Object) -> list[str]:
        """Create a claim; return a list with the error, or an empty list if the creation succeeded."""
        try:
            self._client.create(desired)
        except ApiError as error:
            if not isinstance(error, AlreadyExists):
                self._tell_claim(pod, desired, error)
            return [f"failed to create PVC {desired.name}: {error}"]
        self._tell_claim(pod, desired)
        return []

    def _hand_over(self, pod: Object) -> None:
        """Set the owners of a pod's existing claims to the owners that the retention policy requires."""
        for template in self._set.view(StatefulSet).claim_templates:
            name = claim_name(template, self._set, ordinal_of(pod))
            claim = self._claim(name)
            if claim is None:
                continue
            if has_unexpected_controller(claim, self._set, pod):
                # Kubernetes spells the word "manging" in this message.
                message = (
                    f"PersistentVolumeClaim {name} has a conflicting OwnerReference that acts as a manging controller, "
                    "the retention policy is ignored for this claim"
                )
                self._recorder.event(self._set, WARNING, "ConflictingController", message)
            if not is_up_to_date(claim, self._set, pod):
                self._client.update(with_owner(claim, self._set, pod))

    def _tell(self, verb: str, pod: Object, error: ApiError | None = None) -> None:
        message = f"{verb} Pod {pod.name} in StatefulSet {self._set.name}"
        if error is None:
            self._recorder.event(self._set, NORMAL, f"Successful{verb}", f"{message} successful")
        else:
            self._recorder.event(self._set, WARNING, f"Failed{verb}", f"{message} failed error: {error}")

    def _tell_claim(self, pod: Object, claim: Object, error: ApiError | None = None) -> None:
        where = f"Pod {pod.name} in StatefulSet {self._set.name}"
        if error is None:
            message = f"Create Claim {claim.name} {where} success"
            self._recorder.event(self._set, NORMAL, "SuccessfulCreate", message)
        else:
            message = f"Create Claim {claim.name} for {where} failed error: {error}"
            self._recorder.event(self._set, WARNING, "FailedCreate", message)

    _acts: ClassVar[dict[PodAction, Callable[[StatefulPodControl, Object], None]]] = {
        PodAction.CREATE: _create,
        PodAction.DELETE: _delete,
        PodAction.CLAIM: _supply,
        PodAction.UPDATE: _update,
        PodAction.HAND_OVER: _hand_over,
        PodAction.REPLACE: _replace,
    }
