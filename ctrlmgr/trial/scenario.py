"""Scenarios: the changes that a user makes while the operator runs.

A scenario is a list of steps, read from YAML. Each step is a mapping with one key: `apply`, `patch`, `scale`, `delete`
or `wait`. Errors name the file, the number of the step, and what to write instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from ctrlmgr.errors import SettingsError
from ctrlmgr.trial.yaml_files import read_document, read_documents

_TARGET = ("apiVersion", "kind", "name", "namespace")
QUIET = "quiet"


class Target(NamedTuple):
    """The object that a step concerns; `namespace` is empty for objects without a namespace."""

    api_version: str
    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        """Return `kind namespace/name`, as findings name objects."""
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"


class Apply(NamedTuple):
    """Creates or changes objects with server-side apply."""

    objects: tuple[Mapping[str, Any], ...]


class Patch(NamedTuple):
    """Changes one object with a JSON merge patch."""

    target: Target
    patch: Mapping[str, Any]


class Scale(NamedTuple):
    """Sets the number of replicas through the subresource `scale`."""

    target: Target
    replicas: int


class Delete(NamedTuple):
    """Deletes one object."""

    target: Target


class Wait(NamedTuple):
    """Waits until the log is quiet (`target` is None), or until an object has a condition, exists, or is gone."""

    target: Target | None = None
    condition: str = ""
    exists: bool = True


Step: TypeAlias = Apply | Patch | Scale | Delete | Wait


class Scenario(NamedTuple):
    """The steps of a user, in their order."""

    steps: tuple[Step, ...]


def load(file: Path) -> Scenario:
    """Read a scenario from a YAML file; paths in it are relative to the folder of the file.

    Raises `SettingsError` if the file cannot be read or is no scenario.
    """
    return parse(read_document(file), str(file), file.parent)


def parse(document: Any, source: str, folder: Path) -> Scenario:
    """Return the scenario of a decoded YAML document.

    Errors name `source`; paths are relative to `folder`. Raises `SettingsError` if the document is no scenario.
    """
    steps = document.get("steps") if isinstance(document, Mapping) else None
    if not isinstance(steps, list) or not steps or len(document) > 1:
        raise SettingsError(f"{source}: a scenario is a mapping whose only key `steps` has a list of steps")
    return Scenario(tuple(_Reader(f"{source}: step {n}", folder).step(step) for n, step in enumerate(steps, 1)))


def to_document(scenario: Scenario) -> dict[str, Any]:
    """Return a scenario as a document that `parse` reads again."""
    return {"steps": [_step_document(step) for step in scenario.steps]}


def load_objects(file: Path) -> list[dict[str, Any]]:
    """Return the objects of a file of manifests, without empty documents; items of a `List` are returned one by one.

    Raises `SettingsError` if the file cannot be read, or contains something else.
    """
    found = [each for each in read_documents(file) if each is not None]
    lists = [each["items"] if _is_list(each) else [each] for each in found]
    return [_checked_object(item, str(file)) for items in lists for item in items]


class _Reader:
    """Reads one step; errors begin with the place of the step."""

    def __init__(self, place: str, folder: Path) -> None:
        self._place = place
        self._folder = folder

    def step(self, step: Any) -> Step:
        readers: dict[str, Callable[[Any], Step]] = {
            "apply": self._apply,
            "patch": self._patch,
            "scale": self._scale,
            "delete": self._delete,
            "wait": self._wait,
        }
        if not isinstance(step, Mapping) or len(step) != 1 or (action := next(iter(step))) not in readers:
            raise self._wrong(f"a step is a mapping with one key of {', '.join(readers)}")
        return readers[action](step[action])

    def _apply(self, value: Any) -> Apply:
        given = value if isinstance(value, list) else [value]
        objects: list[Mapping[str, Any]] = []
        for each in given:
            if isinstance(each, str):
                objects += load_objects(self._folder / each)
            else:
                objects.append(_checked_object(each, f"{self._place}: apply"))
        if not objects:
            raise self._wrong("apply: no objects; give an object, the path of a file, or a list of both")
        return Apply(tuple(objects))

    def _patch(self, value: Any) -> Patch:
        fields = self._fields("patch", value, "patch")
        patch = fields.get("patch")
        if not isinstance(patch, Mapping):
            raise self._wrong("patch: `patch` must be a mapping, a JSON merge patch")
        return Patch(self._target("patch", fields), patch)

    def _scale(self, value: Any) -> Scale:
        fields = self._fields("scale", value, "replicas")
        replicas = fields.get("replicas")
        if not isinstance(replicas, int) or isinstance(replicas, bool) or replicas < 0:
            raise self._wrong("scale: `replicas` must be a whole number of at least 0")
        return Scale(self._target("scale", fields), replicas)

    def _delete(self, value: Any) -> Delete:
        return Delete(self._target("delete", self._fields("delete", value)))

    def _wait(self, value: Any) -> Wait:
        if value == QUIET:
            return Wait()
        fields = self._fields("wait", value, "condition", "exists")
        condition, exists = fields.get("condition", ""), fields.get("exists", True)
        if not isinstance(condition, str) or not isinstance(exists, bool):
            raise self._wrong("wait: `condition` must be a condition's type such as Ready, `exists` true or false")
        if condition and not exists:
            raise self._wrong("wait: an object that does not exist has no condition; omit one of the two")
        return Wait(self._target("wait", fields), condition, exists)

    def _fields(self, action: str, value: Any, *more: str) -> Mapping[str, Any]:
        allowed = (*_TARGET, *more)
        if not isinstance(value, Mapping):
            or_quiet = f" or `{QUIET}`" if action == "wait" else ""
            raise self._wrong(f"{action}: expected a mapping with {', '.join(allowed)}{or_quiet}")
        if unknown := [str(key) for key in value if key not in allowed]:
            raise self._wrong(f"{action}: unknown key {unknown[0]!r}; known keys are {', '.join(allowed)}")
        return value

    def _target(self, action: str, fields: Mapping[str, Any]) -> Target:
        for key in _TARGET:
            given = fields.get(key, "" if key == "namespace" else None)
            if not isinstance(given, str) or not (given or key == "namespace"):
                raise self._wrong(f"{action}: `{key}` must be a string that is not empty")
        return Target(fields["apiVersion"], fields["kind"], fields.get("namespace", ""), fields["name"])

    def _wrong(self, what: str) -> SettingsError:
        return SettingsError(f"{self._place}: {what}")


def _is_list(document: Any) -> bool:
    return isinstance(document, Mapping) and document.get("kind") == "List" and isinstance(document.get("items"), list)


def _checked_object(value: Any, place: str) -> dict[str, Any]:
    """Return an object; raises `SettingsError` unless it has apiVersion, kind and metadata.name."""
    named = isinstance(value, Mapping) and isinstance(value.get("metadata"), Mapping) and value["metadata"].get("name")
    if not named or not all(isinstance(value.get(key), str) for key in ("apiVersion", "kind")):
        raise SettingsError(f"{place}: an object needs apiVersion, kind and metadata.name")
    return dict(value)


def _step_document(step: Step) -> dict[str, Any]:
    match step:
        case Apply(objects):
            return {"apply": [dict(each) for each in objects]}
        case Patch(target, patch):
            return {"patch": {**_target_document(target), "patch": dict(patch)}}
        case Scale(target, replicas):
            return {"scale": {**_target_document(target), "replicas": replicas}}
        case Delete(target):
            return {"delete": _target_document(target)}
        case Wait(None):
            return {"wait": QUIET}
        case Wait(target, condition, exists):
            assert target is not None
            expected = {"condition": condition} if condition else {"exists": exists}
            return {"wait": {**_target_document(target), **expected}}


def _target_document(target: Target) -> dict[str, str]:
    names = {"apiVersion": target.api_version, "kind": target.kind, "name": target.name}
    return names | ({"namespace": target.namespace} if target.namespace else {})


def described(step: Step) -> str:
    """Return a step in a few words, such as `delete Widget default/a`."""
    match step:
        case Apply(objects):
            return f"apply {', '.join(_name(each) for each in objects)}"
        case Patch(target, _):
            return f"patch {target}"
        case Scale(target, replicas):
            return f"scale {target} to {replicas}"
        case Delete(target):
            return f"delete {target}"
        case Wait(None):
            return "wait until the log is quiet"
        case Wait(target, condition, exists):
            return f"wait until {target} {f'is {condition}' if condition else 'exists' if exists else 'is gone'}"


def _name(obj: Mapping[str, Any]) -> str:
    metadata = obj["metadata"]
    return str(Target(obj["apiVersion"], obj["kind"], metadata.get("namespace", ""), metadata["name"]))


def objects_of(files: Sequence[Path]) -> list[dict[str, Any]]:
    """Return the objects of several files of manifests; see `load_objects`."""
    return [each for file in files for each in load_objects(file)]
