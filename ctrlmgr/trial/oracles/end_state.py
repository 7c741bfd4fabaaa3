"""The oracle `end-state`: a perturbed run must end in the same state as a clean run.

Differences between two clean runs are masked: fields that are random or contain times, and generated names. Some values
differ between any two runs and are always masked: uids, times, revisions, and the addresses and nodes that the control
plane chooses.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import (
    ENDPOINT_SLICES,
    ENDPOINTS,
    EVENTS,
    EVENTS_V1,
    INTERNAL_GROUP,
    LEASES,
    NODES,
    SECRETS,
    SERVICES,
    Key,
    Resource,
    Revision,
)
from ctrlmgr.eventlog import EventLog
from ctrlmgr.trial.finding import Finding
from ctrlmgr.trial.oracles.volatile_values import masked_text

NAME: Final = "end-state"
TOUCHED: Final = "trial.ctrlmgr.io/touched"
"""The annotation that another client changes in a lost race."""
_IGNORED = frozenset(
    {
        ENDPOINTS,
        ENDPOINT_SLICES,
        EVENTS,
        EVENTS_V1,
        LEASES,
        NODES,
        Resource("apiregistration.k8s.io", "apiservices"),
        Resource("networking.k8s.io", "ipaddresses"),
        Resource("storage.k8s.io", "csinodes"),
    }
)
_API_SERVICE = Key("default", "kubernetes")
_CHOSEN = frozenset(
    {
        "clusterIP",
        "clusterIPs",
        "containerID",
        "healthCheckNodePort",
        "hostIP",
        "hostIPs",
        "imageID",
        "nodeName",
        "nodePort",
        "podIP",
        "podIPs",
        "resourceVersion",
        "uid",
        "volumeName",
    }
)
"""The fields that the control plane chooses."""
_KEPT_METADATA = ("labels", "annotations", "finalizers")
_LONGEST = 80
_MOST_FIELDS = 3


class Name(NamedTuple):
    """The name of one object, or of all objects with one generated name, which then ends with `*`."""

    resource: Resource
    namespace: str
    name: str


class State(NamedTuple):
    """The objects at the end of a run, in a form in which two runs can be compared.

    `objects` has for each name the objects, in the order of their text. `kinds` has the kind of each resource.
    """

    objects: Mapping[Name, list[dict[str, Any]]]
    kinds: Mapping[Resource, str]

    def title(self, name: Name) -> str:
        """Return `kind namespace/name`."""
        key = f"{name.namespace}/{name.name}" if name.namespace else name.name
        return f"{self.kinds.get(name.resource, name.resource)} {key}"


class Expectation(NamedTuple):
    """The end state of clean runs, and what differs between clean runs."""

    state: State
    unstable: frozenset[Name]
    masked: frozenset[tuple[Name, str]]
    """The fields that are not compared: the name of the object, and the path of the field."""

    def findings(self, state: State, revision: Revision) -> list[Finding]:
        """Return the differences of a run's end state; `revision` is the end of the run."""
        return [*self._findings(state, revision)]

    def _findings(self, state: State, revision: Revision) -> Iterator[Finding]:
        both = State(state.objects, {**self.state.kinds, **state.kinds})
        for name in sorted({*self.state.objects, *state.objects} - self.unstable):
            expected, actual = self.state.objects.get(name, []), state.objects.get(name, [])
            title = both.title(name)
            if len(expected) == len(actual):
                for message in self._field_messages(name, expected, actual):
                    yield Finding(NAME, f"{title} ends with {message}.", title, revision)
            elif not self._is_generated(name):
                yield Finding(NAME, f"{title} {_counted(len(expected), len(actual))}.", title, revision)
        yield from self._generated(both, revision)

    def _is_generated(self, name: Name) -> bool:
        """Return whether objects with generated names are expected beside this object, which may be one of them."""
        return name not in self.state.objects and any(name[:2] == each[:2] for each in self.unstable)

    def _generated(self, state: State, revision: Revision) -> Iterator[Finding]:
        """Compare the numbers of objects whose names differ between clean runs."""
        for resource, namespace in sorted({each[:2] for each in self.unstable}):
            place = (resource, namespace)
            expected = sum(name[:2] == place and name in self.unstable for name in self.state.objects)
            actual = sum(
                name[:2] == place and (name in self.unstable or name not in self.state.objects)
                for name in state.objects
            )
            if expected != actual:
                title = state.title(Name(resource, namespace, "*"))
                yield Finding(
                    NAME,
                    f"the run ends with {actual} objects {title} with generated names instead of {expected}.",
                    title,
                    revision,
                )

    def _field_messages(
        self, name: Name, expected: list[dict[str, Any]], actual: list[dict[str, Any]]
    ) -> Iterator[str]:
        found = [
            message
            for one, other in zip(expected, actual, strict=True)
            for path, message in field_differences(one, other, is_secret=name.resource == SECRETS)
            if (name, path) not in self.masked
        ]
        yield from found[:_MOST_FIELDS]


def learn(one: State, other: State) -> Expectation:
    """Return what two clean runs have in common."""
    names = {*one.objects, *other.objects}
    unstable = {name for name in names if len(one.objects.get(name, [])) != len(other.objects.get(name, []))}
    masked = {
        (name, path)
        for name in names - unstable
        for left, right in zip(one.objects[name], other.objects[name], strict=True)
        for path, _ in field_differences(left, right)
    }
    return Expectation(one, frozenset(unstable), frozenset(masked))


def state_of(log: EventLog, started_at: Revision, at: Revision | None = None) -> State:
    """Return the state of a run at a revision; None means now.

    Objects that have not changed since `started_at` are represented by their names only.
    """
    snapshot = log.snapshot(at=at)
    objects: dict[Name, list[dict[str, Any]]] = {}
    kinds: dict[Resource, str] = {}
    tracked = [each for each in snapshot.objects if not _is_ignored(each)]
    owners = {each.uid: each.name for each in tracked}
    for obj in tracked:
        fields = msgspec.json.decode(obj.body) if obj.revision > started_at else {}
        kinds.setdefault(obj.resource, str(fields.get("kind", obj.resource)))
        objects.setdefault(_name(obj), []).append(_comparable(fields, owners) if fields else {})
    for each in objects.values():
        each.sort(key=lambda fields: json.dumps(fields, sort_keys=True))
    return State(objects, kinds)


def field_differences(one: Any, other: Any, path: str = "", *, is_secret: bool = False) -> Iterator[tuple[str, str]]:
    """Yield the path of each field that differs, with a description such as `spec.size 2 instead of 3`."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in sorted({*one, *other}):
            inner = f"{path}.{key}" if path else str(key)
            yield from field_differences(one.get(key), other.get(key), inner, is_secret=is_secret)
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for index, (left, right) in enumerate(zip(one, other, strict=True)):
            yield from field_differences(left, right, f"{path}[{index}]", is_secret=is_secret)
    elif one != other:
        hidden = is_secret and path.split(".")[0] in ("data", "stringData")
        yield path, f"another {path}" if hidden else f"{path} {_shown(other)} instead of {_shown(one)}"


def _counted(expected: int, actual: int) -> str:
    if not actual:
        return "is missing at the end of the run; clean runs end with it"
    if not expected:
        return "exists at the end of the run; clean runs end without it"
    return f"exists {actual} times at the end of the run; clean runs end with {expected}"


def _shown(value: Any) -> str:
    text = "nothing" if value is None else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _is_ignored(obj: Object) -> bool:
    """Return whether the control plane itself changes an object at any time, such as its own Service."""
    is_own_service = obj.resource == SERVICES and obj.key == _API_SERVICE
    return obj.resource in _IGNORED or obj.resource.group == INTERNAL_GROUP or is_own_service


def _name(obj: Object) -> Name:
    generated = obj.metadata.generate_name
    is_generated = generated and obj.name.startswith(generated)
    return Name(obj.resource, obj.namespace, f"{generated}*" if is_generated else obj.name)


def _comparable(fields: Mapping[str, Any], owners: Mapping[str, str]) -> dict[str, Any]:
    """Return the fields of an object that must be equal in two runs."""
    metadata = fields.get("metadata") or {}
    annotations = {key: value for key, value in (metadata.get("annotations") or {}).items() if key != TOUCHED}
    shown = {**metadata, "annotations": annotations}
    kept = {key: value for key in _KEPT_METADATA if (value := shown.get(key))}
    kept["owners"] = sorted(_owner(each, owners) for each in metadata.get("ownerReferences") or ())
    kept["is being deleted"] = "deletionTimestamp" in metadata
    rest = {key: value for key, value in fields.items() if key not in ("metadata", "apiVersion", "kind")}
    cleaned: dict[str, Any] = _cleaned({**rest, "metadata": kept}, metadata.get("generation"))
    return cleaned


def _owner(reference: Mapping[str, Any], owners: Mapping[str, str]) -> str:
    exists = reference.get("uid") in owners
    return f"{reference.get('kind')} {reference.get('name')}{'' if exists else ', which does not exist'}"


def _cleaned(value: Any, generation: Any) -> Any:
    """Return a value without what differs between any two runs."""
    if isinstance(value, dict):
        return {
            key: value[key] == generation if key == "observedGeneration" else _cleaned(value[key], generation)
            for key in value
            if key not in _CHOSEN
        }
    if isinstance(value, list):
        cleaned = [_cleaned(each, generation) for each in value]
        has_types = all(isinstance(each, dict) and isinstance(each.get("type"), str) for each in cleaned)
        return sorted(cleaned, key=lambda each: str(each["type"])) if has_types else cleaned
    return masked_text(value) if isinstance(value, str) else value
