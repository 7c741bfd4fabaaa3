"""Finds the desired number of pods of a pod's controller.

The percentages in a PodDisruptionBudget refer to that number. Guarantees, as in Kubernetes (`finders` in
`pkg/controller/disruption/disruption.go`): a ReplicaSet of a Deployment counts as the Deployment. If the controller's
kind is unknown, the scale subresource is read through the API. If the kind has no scale subresource, an error with
Kubernetes' message is raised.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

import msgspec

from ctrlmgr.api.object import Object, OwnerReference
from ctrlmgr.api.resource import Key, Resource, group_of
from ctrlmgr.client import EngineClient
from ctrlmgr.controllers.disruption.decide import Scale
from ctrlmgr.controllers.workloads.controlled_pods import controller_of
from ctrlmgr.engine.kind import Kind
from ctrlmgr.errors import NotFound
from ctrlmgr.golang.go_text import quote
from ctrlmgr.informer import Lister

CONTROLLERS: Final = Resource("", "replicationcontrollers")
REPLICA_SETS: Final = Resource("apps", "replicasets")
DEPLOYMENTS: Final = Resource("apps", "deployments")
STATEFUL_SETS: Final = Resource("apps", "statefulsets")
KNOWN: Final = (CONTROLLERS, REPLICA_SETS, DEPLOYMENTS, STATEFUL_SETS)

_APPS: Final = ("apps", "extensions")


class NoScaleError(Exception):
    """Raised if the desired number of pods of a controller cannot be read; users see the message."""


class _Spec(msgspec.Struct, frozen=True, gc=False):
    replicas: int | None = None


class _Scaled(msgspec.Struct, frozen=True, gc=False):
    spec: _Spec = _Spec()


def _scale(obj: Object) -> Scale:
    replicas = obj.view(_Scaled).spec.replicas
    return Scale(obj.uid, 1 if replicas is None else replicas)


class Scales:
    """Finds the desired numbers of pods of controllers."""

    def __init__(self, listers: Mapping[Resource, Lister], kinds: Callable[[], Iterable[Kind]]) -> None:
        """Create an instance that reads the controllers in `KNOWN` from `listers`; `kinds` returns the served kinds."""
        self._listers = listers
        self._kinds = kinds

    def of(self, pod: Object, client: EngineClient) -> Scale:
        """Return the scale of a pod's controller.

        Raises `NoScaleError` if no scale is found, and the errors of `client`.
        """
        reference = controller_of(pod)
        assert reference is not None, "a pod without a controller is not asked for"
        found = self._known(reference, pod.namespace) or self._requested_scale(reference, pod.namespace, client)
        if found is None:
            raise NoScaleError(f"found no controllers for pod {quote(pod.name)}")
        return found

    def _known(self, reference: OwnerReference, namespace: str) -> Scale | None:
        kind, group = reference.kind, group_of(reference.api_version)
        if (kind, group) == ("ReplicationController", ""):
            return self._get(CONTROLLERS, reference, namespace)
        if (kind, group) == ("StatefulSet", "apps"):
            return self._get(STATEFUL_SETS, reference, namespace)
        if kind == "ReplicaSet" and group in _APPS:
            return self._of_replica_set(reference, namespace)
        return None

    def _of_replica_set(self, reference: OwnerReference, namespace: str) -> Scale | None:
        found = self._listers[REPLICA_SETS].get(Key(namespace, reference.name))
        if found is None or found.uid != reference.uid:
            return None
        owner = controller_of(found)
        if owner is None or owner.kind != "Deployment":
            return _scale(found)
        return self._get(DEPLOYMENTS, owner, namespace) if group_of(owner.api_version) in _APPS else None

    def _get(self, resource: Resource, reference: OwnerReference, namespace: str) -> Scale | None:
        found = self._listers[resource].get(Key(namespace, reference.name))
        return None if found is None or found.uid != reference.uid else _scale(found)

    def _requested_scale(self, reference: OwnerReference, namespace: str, client: EngineClient) -> Scale | None:
        named = (reference.api_version, reference.kind)
        kind = next((each for each in self._kinds() if (each.gvk.api_version, each.gvk.kind) == named), None)
        if kind is None:
            raise NoScaleError(f"no matches for kind {quote(reference.kind)} in version {quote(reference.api_version)}")
        if "scale" not in kind.subresources:
            raise NoScaleError(f"{kind.resource} does not implement the scale subresource")
        try:
            scale = client.scale(kind, namespace, reference.name)
        except NotFound:
            return None
        return _scale(scale) if scale.uid == reference.uid else None
