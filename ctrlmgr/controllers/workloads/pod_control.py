"""Pods made from templates and deleted, and what is told of it on the owner.

Guarantees, Kubernetes' (`pkg/controller/controller_utils.go`, `RealPodControl`):
- A pod has its template's labels, annotations and finalizers, and its owner as controller.
- Each pod made or deleted, and each failure, is an Event on the owner: `SuccessfulCreate`, `FailedCreate`,
  `SuccessfulDelete`, `FailedDelete`. A namespace on its way out refuses pods silently.
- Many are made in a slow start: 1, 2, 4 … at a time, and no more after a batch in which one failed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from ctrlmgr import threads
from ctrlmgr.api.object import Object
from ctrlmgr.client import EngineClient
from ctrlmgr.controllers.events.recorder import NORMAL, WARNING, Recorder
from ctrlmgr.controllers.workloads.claims import Owner
from ctrlmgr.engine.validation.names import subdomain_name
from ctrlmgr.errors import ApiError, CtrlmgrError, NamespaceTerminating, NotFound

CREATED: Final = "SuccessfulCreate"
NOT_CREATED: Final = "FailedCreate"
DELETED: Final = "SuccessfulDelete"
NOT_DELETED: Final = "FailedDelete"


def name_prefix(owner: str) -> str:
    """Return what the generated names of an owner's pods begin with: its name and a dash, where that is valid."""
    prefix = f"{owner}-"
    return owner if subdomain_name(prefix, True) else prefix


def pod_from_template(template: Mapping[str, Any], owner: Owner, **metadata: Any) -> dict[str, Any]:
    """Return a pod made of a template; `metadata` are further fields of it, over a `generateName` by the owner."""
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
    """Yield how many to do in each batch: `first`, then twice as many each time, `count` in all."""
    size = first
    while count > 0:
        batch = min(size, count)
        yield batch
        count -= batch
        size *= 2


def in_batches(count: int, act: Callable[[int], object], at_once: int = 1) -> tuple[int, CtrlmgrError | None]:
    """Call `act` with 0 … `count` - 1 in a slow start; return how often it succeeded, and the first error.

    A batch is gone through to its end; after one in which a call failed there is no other. So many calls are made
    `at_once`, each on a thread of its own, so that the log commits what they write together.
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
    """Call `act` with each of the numbers, and return what the API refused each for."""

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
    """Makes and deletes the pods of one owner during one reconcile."""

    def __init__(self, owner: Owner, client: EngineClient, recorder: Recorder) -> None:
        """Write through `client`; `recorder` is told of it."""
        self._owner = owner
        self._client = client
        self._recorder = recorder

    def create(self, pod: Mapping[str, Any]) -> Object | None:
        """Create a pod; None when its namespace is on its way out. Raises what `EngineClient.create` raises."""
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
        """Delete a pod, unless it is gone; raises what else `EngineClient.delete` raises."""
        try:
            self._client.delete(pod)
        except NotFound:
            return
        except ApiError as error:
            self._tell(WARNING, NOT_DELETED, f"Error deleting: {error}")
            raise
        self._tell(NORMAL, DELETED, f"Deleted pod: {pod.name}")

    def delete_each(self, pods: Iterable[Object]) -> ApiError | None:
        """Delete as many of the pods as can be, and return the first error."""
        failure: ApiError | None = None
        for pod in pods:
            try:
                self.delete(pod)
            except ApiError as error:
                failure = failure or error
        return failure

    def _tell(self, type_: str, reason: str, message: str) -> None:
        self._recorder.event(self._owner.object, type_, reason, message)
