"""The recycler: runs a pod that deletes the content of a released volume, and deletes the pod afterwards.

Guarantees, which are the same as in Kubernetes' `recycler_client.go`: at most one pod recycles a volume, because the
volume determines the name of the pod. If another pod with the recycler pod's name exists, the other pod is deleted, and
the recycling is retried later. The pod is deleted when it has succeeded or failed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Final, NamedTuple

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key
from ctrlmgr.client import EngineClient
from ctrlmgr.controllers.persistentvolume_binder.binder_plans import Fields
from ctrlmgr.controllers.persistentvolume_binder.recycler_pods import RecyclerPods
from ctrlmgr.errors import AlreadyExists, ApiError, NotFound
from ctrlmgr.informer import Change, Lister

_PREFIX: Final = "recycler-for-"


class Recycling(NamedTuple):
    """The state of the recycling of a volume; the problem is empty if the recycling succeeded or continues."""

    is_over: bool
    problem: str = ""


_RUNNING: Final = Recycling(is_over=False)


class Recycler:
    """Recycles volumes with pods."""

    def __init__(self, pods: Lister, recyclers: Mapping[str, RecyclerPods]) -> None:
        """Create a recycler; `recyclers` has the pods of each plugin, by the field of a volume's spec."""
        self._pods = pods
        self._recyclers = recyclers
        self._running: dict[str, Object] = {}  # the created pods, by the uid of their volume
        self._deleted: dict[str, str] = {}  # the uid of the pod that was deleted last, by its name

    def is_running(self, volume: Fields) -> bool:
        """Return whether a pod recycles a volume."""
        return volume["metadata"]["uid"] in self._running

    def source(self, volume: Fields) -> str | None:
        """Return the field of a volume's spec that names its storage; None if such a volume cannot be recycled."""
        return next((each for each in self._recyclers if each in volume["spec"]), None)

    def run(self, volume: Fields, source: str, client: EngineClient) -> Recycling:
        """Start or continue the recycling of a volume."""
        uid = volume["metadata"]["uid"]
        created = self._running.get(uid)
        if created is None:
            return self._start(uid, Object.from_dict(self._recyclers[source].pod(volume, source)), client)
        found = self._result(created)
        if found.is_over:
            del self._running[uid]
            with suppress(NotFound):
                client.delete(created)
        return found

    def _start(self, uid: str, pod: Object, client: EngineClient) -> Recycling:
        try:
            self._running[uid] = client.create(pod)
        except AlreadyExists:
            return self._remove_old(pod, client)
        except ApiError as error:
            return Recycling(is_over=True, problem=f"unexpected error creating recycler pod:  {error}")
        return _RUNNING

    def _remove_old(self, pod: Object, client: EngineClient) -> Recycling:
        try:
            client.delete(self._pods.get(pod.key) or pod)
        except ApiError as error:
            problem = f"failed to delete old recycler pod {pod.key}: {error}"
            return Recycling(is_over=True, problem=problem)
        return Recycling(is_over=True, problem="old recycler pod found, will retry later")

    def _result(self, created: Object) -> Recycling:
        if self._deleted.get(created.name) == created.uid:
            return Recycling(is_over=True, problem="failed to recycle volume: recycler pod was deleted")
        pod = self._pods.get(created.key)
        status = (pod.to_dict().get("status") or {}) if pod is not None and pod.uid == created.uid else {}
        if status.get("phase") == "Failed":
            problem = status.get("message") or "pod failed, pod.Status.Message unknown"
            return Recycling(is_over=True, problem=f"failed to recycle volume: {problem}")
        return Recycling(is_over=status.get("phase") == "Succeeded")

    def volume_keys(self, change: Change) -> Iterator[Key]:
        """Yield the key of the volume that a changed pod recycles."""
        name = change.object.name
        if name.startswith(_PREFIX):
            if change.new is None:
                self._deleted[name] = change.object.uid
            yield Key("", name.removeprefix(_PREFIX))
