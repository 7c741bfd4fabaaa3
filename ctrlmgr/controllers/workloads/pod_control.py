"""Creates and deletes pods of an owner, and records Events on the owner.

Guarantees, as in Kubernetes (`pkg/controller/controller_utils.go`, `RealPodControl`):
- A pod has the labels, annotations and finalizers of its template. Its owner reference identifies the owner as its
  controller.
- Each creation, each deletion, and each failure of a creation or deletion is recorded as an Event about the owner:
  `SuccessfulCreate`, `FailedCreate`, `SuccessfulDelete`, `FailedDelete`. In a terminating namespace, failed creations
  cause no Event.
- Pods are created in batches of 1, 2, 4 … (slow start). After a failure, no further batch is started.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from ctrlmgr import threads
from ctrlmgr.api.object import Object
from ctrlmgr.client import EngineClient
from ctrlmgr.controllers.events.recorder import NORMAL, WARNING, Recorder
from ctrlmgr.controllers.workloads.controller_ref_manager import Owner
from ctrlmgr.engine.validation.name_formats import subdomain_name
from ctrlmgr.errors import ApiError, CtrlmgrError, NamespaceTerminating, NotFound

CREATED: Final = "SuccessfulCreate"
NOT_CREATED: Final = "FailedCreate"
DELETED: Final = "SuccessfulDelete"
NOT_DELETED: Final = "FailedDelete"


def name_prefix(owner: str) -> str:
    """Return the prefix of the generated names of an owner's pods.

    The prefix is the owner's name and a dash; if a name with the dash would be invalid, the dash is left out.
    """
    prefix = f"{owner}-"
    return owner if subdomain_name(prefix, True) else prefix


def pod_from_template(template: Mapping[str, Any], owner: Owner, **metadata: Any) -> dict[str, Any]:
    """Return a pod from a template; the fields in `metadata` replace the default `generateName`."""
    given = template.get("metadata") or {}
    kept = {key: given[key] for key in ("labels", "annotations", "finalizers") if given.get(key)}
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {
            "namespace": owner.object.namespace,
            "generateName": name_prefix(owner.object.name),
            **metadata,
            **{key: type(value)(value) for key, value in kept.items()},
            "ownerReferences": [owner.reference()],
        },
        "spec": dict(template.get("spec") or {}),
    }


def slow_start(count: int, first: int = 1) -> Iterator[int]:
    """Yield the size of each batch of a slow start.

    The first batch has the size `first`, each later batch is twice as large, and the sum of all sizes is `count`.
    """
    size = first
    while count > 0:
        batch = min(size, count)
        yield batch
        count -= batch
        size *= 2


def in_batches(count: int, act: Callable[[int], object], at_once: int = 1) -> tuple[int, CtrlmgrError | None]:
    """Call `act` with each number from 0 to `count` - 1 in a slow start.

    Return the number of successes, and the first error. A batch is always completed; after a batch with a failure, no
    further batch is started. The argument `at_once` limits how many calls run concurrently in threads, so that the log
    commits their writes together.
    """
    succeeded, at = 0, 0
    for batch in slow_start(count):
        failures = [each for each in _attempted(act, range(at, at + batch), at_once) if each is not None]
        succeeded += batch - len(failures)
        if failures:
            return succeeded, failures[0]
        at += batch
    return succeeded, None


def _attempted(act: Callable[[int], object], numbers: range, at_once: int) -> list[ApiError | None]:
    """Call `act` with each number; return a list that contains the API's error or None for each call."""

    def attempt(number: int) -> ApiError | None:
        try:
            act(number)
        except ApiError as error:
            return error
        return None

    if at_once == 1 or len(numbers) == 1:
        return [attempt(number) for number in numbers]
    return threads.each("batch", attempt, numbers, at_once)


class PodControl:
    """Creates and deletes the pods of one owner during one reconcile."""

    def __init__(self, owner: Owner, client: EngineClient, recorder: Recorder) -> None:
        """Create an instance that writes through `client`; `recorder` records Events."""
        self._owner = owner
        self._client = client
        self._recorder = recorder

    def create(self, pod: Mapping[str, Any]) -> Object | None:
        """Create a pod; return None if the pod's namespace is terminating.

        Raises the other errors of `EngineClient.create` if the creation fails.
        """
        try:
            created = self._client.create(Object.from_dict(pod))
        except NamespaceTerminating:
            return None
        except ApiError as error:
            self._tell(WARNING, NOT_CREATED, f"Error creating: {error}")
            raise
        self._tell(NORMAL, CREATED, f"Created pod: {created.name}")
        return created

    def delete(self, pod: Object) -> None:
        """Delete a pod, and record an Event about the owner.

        If the pod is already deleted, no error is raised; other errors of `EngineClient.delete` are raised.
        """
        try:
            self._client.delete(pod)
        except NotFound:
            return
        except ApiError as error:
            self._tell(WARNING, NOT_DELETED, f"Error deleting: {error}")
            raise
        self._tell(NORMAL, DELETED, f"Deleted pod: {pod.name}")

    def delete_each(self, pods: Iterable[Object]) -> ApiError | None:
        """Delete all pods, and continue after errors; return the first error."""
        failure: ApiError | None = None
        for pod in pods:
            try:
                self.delete(pod)
            except ApiError as error:
                failure = failure or error
        return failure

    def _tell(self, type_: str, reason: str, message: str) -> None:
        self._recorder.event(self._owner.object, type_, reason, message)
