"""Keeps the status of CustomResourceDefinitions; if one is being deleted, deletes its instances first.

The controller runs in every process that serves the API, leader or not. Several processes can run the controller at
once, because each write is conditional on the revision that was read. If another process has already written the
result, this process writes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from random import Random
from typing import Any

import msgspec
import structlog

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import DEFINITIONS, Key, Resource
from ctrlmgr.client import Client, EngineClient
from ctrlmgr.clock import Clock, format_time_seconds
from ctrlmgr.controllers.customresourcedefinitions.cleanup import is_going, next_step
from ctrlmgr.controllers.customresourcedefinitions.status import desired_status
from ctrlmgr.errors import ApiError, Conflict, NotFound
from ctrlmgr.eventlog import EventLog
from ctrlmgr.informer import Change, Informers, Lister
from ctrlmgr.manager import Controller, Result, Watch

log = structlog.get_logger(__name__)

CONTROLLER_NAME = "customresourcedefinition-controller"

_AGAIN = 0.25
"""The initial number of seconds until remaining instances are checked again; the interval grows with each check."""
_LONGEST = 5.0


class _Spec(msgspec.Struct):
    group: str


class _Status(msgspec.Struct, rename="camel"):
    accepted_names: dict[str, Any] | None = None


class _Outline(msgspec.Struct):
    """The fields of a CustomResourceDefinition that affect which names other CustomResourceDefinitions can get."""

    metadata: dict[str, Any]
    spec: _Spec
    status: _Status | None = None


def _names_of(definition: Object) -> dict[str, Any]:
    """Return the names and group of a CustomResourceDefinition, without decoding its schemas."""
    outline = definition.view(_Outline)
    accepted = outline.status.accepted_names if outline.status is not None else None
    return {
        "metadata": outline.metadata,
        "spec": {"group": outline.spec.group},
        "status": {"acceptedNames": accepted or {}},
    }


class DefinitionReconciler:
    """Reconciles CustomResourceDefinitions."""

    def __init__(self, definitions: Lister, client: EngineClient, *, clock: Clock) -> None:
        """Create a reconciler that reads the CRDs from `definitions`, and lists their instances with `client`."""
        self._definitions = definitions
        self._instances = client.list_all
        self._clock = clock
        # The time when the deletion of a definition's instances began (monotonic seconds), by the definition's uid.
        self._requested_at: dict[str, float] = {}

    def reconcile(self, key: Key, client: Client) -> Result | None:
        """Perform the next step for a CustomResourceDefinition."""
        definition = self._definitions.get(key)
        if definition is None:
            return None
        try:
            return self._step(definition, client)
        except (Conflict, NotFound):  # The definition has changed or was deleted; the informer will report it.
            return None

    def _step(self, definition: Object, client: Client) -> Result | None:
        fields, now = definition.to_dict(), format_time_seconds(self._clock.now())
        group = fields["spec"]["group"]
        others = [_names_of(each) for each in self._definitions.list() if each.name.partition(".")[2] == group]
        status = desired_status(fields, others, now)
        if status != (fields.get("status") or {}):
            client.update(Object.from_dict({**fields, "status": status}), "status")
            return None
        return self._see_off(definition, now, client) if is_going(fields) else None

    def _see_off(self, definition: Object, now: str, client: Client) -> Result | None:
        fields = definition.to_dict()
        step = next_step(fields, None, 0.0, now)
        instances: Sequence[Object] = ()
        if step.definition is None:
            instances = self._instances(_resource(fields))
            step = next_step(fields, len(instances), self._waited(definition), now)
        if step.deletes:
            _delete_all(instances, client)
        if step.definition is not None:
            client.update(Object.from_dict(step.definition), "status")
        if not step.deletes:
            return None
        return Result(requeue_after=min(max(self._waited(definition), _AGAIN), _LONGEST))

    def _waited(self, definition: Object) -> float:
        now = self._clock.monotonic()
        return now - self._requested_at.setdefault(definition.uid, now)


def _resource(fields: dict[str, dict[str, dict[str, str]]]) -> Resource:
    return Resource(str(fields["spec"]["group"]), fields["status"]["acceptedNames"]["plural"])


def _delete_all(instances: Iterable[Object], client: Client) -> None:
    for instance in instances:
        if instance.is_terminating:
            continue
        try:
            client.delete(instance)
        except (NotFound, Conflict):
            continue
        except ApiError as error:
            # If an instance cannot be deleted now, the deletion of the other instances continues.
            log.warning("deleting custom object failed", instance=str(instance), error=str(error))


def _affected(definitions: Lister) -> Callable[[Change], Iterable[Key]]:
    """Return a function that maps a change to the keys of the CustomResourceDefinitions to enqueue.

    The function returns the key of the changed CustomResourceDefinition. If the change frees a name, the function also
    returns the keys of all other CustomResourceDefinitions in the group.
    """

    def keys(change: Change) -> Iterable[Key]:
        if change.new is not None:
            yield change.new.key
        if change.old is not None and not _names(change.old) <= (_names(change.new) if change.new else set()):
            group = change.object.name.partition(".")[2]
            for each in definitions.list():
                if each.key != change.object.key and each.name.partition(".")[2] == group:
                    yield each.key

    return keys


def _names(definition: Object) -> set[str]:
    """Return the names that a CustomResourceDefinition holds, each prefixed with its field, such as `plural`."""
    accepted = _names_of(definition)["status"]["acceptedNames"]
    single = {
        f"{field} {accepted[field]}" for field in ("plural", "singular", "kind", "listKind") if accepted.get(field)
    }
    return single | {f"shortNames {name}" for name in accepted.get("shortNames") or ()}


def new_definition_controller(
    informers: Informers, client: EngineClient, log: EventLog, *, clock: Clock, random: Random
) -> Controller:
    """Build the controller; the caller must do this before the informers sync."""
    definitions = informers.informer(DEFINITIONS)
    return Controller(
        CONTROLLER_NAME,
        DefinitionReconciler(definitions.lister, client, clock=clock),
        watches=[Watch(definitions, _affected(definitions.lister))],
        client=client,
        log=log,
        clock=clock,
        random=random,
    )
