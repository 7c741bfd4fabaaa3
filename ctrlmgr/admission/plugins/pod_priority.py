"""Priority: sets the priority of pods and PodGroups from their PriorityClass, and allows only one default class.

Rules come from Kubernetes' `plugin/pkg/admission/priority/admission.go`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final, NamedTuple

import msgspec

from ctrlmgr.admission.admission_plugin import Plugin
from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import PODS, Key, Resource, Revision
from ctrlmgr.engine.admission_attributes import Attributes, Verb
from ctrlmgr.engine.features.gates import is_on
from ctrlmgr.engine.strategy import State

PRIORITY_CLASSES = Resource("scheduling.k8s.io", "priorityclasses")
_POD_GROUPS: Final = Resource("scheduling.k8s.io", "podgroups")
_GROUP_GATE: Final = "WorkloadAwarePreemption"

_COMPUTED = ("priority", "preemptionPolicy")
_PREEMPTION_POLICY = "PreemptLowerPriority"
_SYSTEM_CLASSES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
"""PriorityClasses that pods may name even before the PriorityClass objects exist."""


class _Class(msgspec.Struct, frozen=True, rename="camel"):
    """The fields of a PriorityClass that the plugin reads."""

    value: int = 0
    global_default: bool = False
    preemption_policy: str | None = None


class _Rank(NamedTuple):
    """The name, priority and preemption policy that a pod gets from its PriorityClass."""

    name: str
    value: int
    preemption_policy: str


_CREATE: Final = Verb.CREATE  # looking up the member of an enum is a function call in Python 3.11
_NO_CLASS: Final = _Rank("", 0, _PREEMPTION_POLICY)


class _Default(NamedTuple):
    """The default PriorityClass at a view's revision, which applies to pods that name no class."""

    view: State | None
    revision: Revision
    classes: Sequence[Object]
    """All PriorityClasses at the revision of the view."""
    rank: _Rank


class Priority(Plugin):
    """Sets the priorities of pods and PodGroups from the names of their PriorityClasses."""

    name: ClassVar[str] = "Priority"

    def __init__(self) -> None:
        """Create the plugin without a cached default class."""
        self._default = _Default(None, 0, (), _NO_CLASS)

    def handles(self, resource: Resource, subresource: str, operation: Verb) -> bool:
        """Return whether the plugin handles the write: of pods and PriorityClasses, and creations of PodGroups."""
        if subresource:
            return False
        if resource == _POD_GROUPS:
            return operation is Verb.CREATE and is_on(_GROUP_GATE)
        return resource in (PODS, PRIORITY_CLASSES) and operation in (Verb.CREATE, Verb.UPDATE)

    def mutates(self, resource: Resource) -> bool:
        """Return whether `admit` must be called: for pods and PodGroups."""
        return resource in (PODS, _POD_GROUPS)

    def validates(self, resource: Resource) -> bool:
        """Return whether `validate` must be called: for PriorityClasses only."""
        return resource == PRIORITY_CLASSES

    def admit(self, attributes: Attributes) -> None:
        """Set the priority of a new pod or PodGroup; an update keeps the pod's priority."""
        spec = attributes.fields.setdefault("spec", {})
        if attributes.resource == _POD_GROUPS:
            changes = _ranked_group(attributes, spec, self._class_of(attributes, spec.get("priorityClassName") or ""))
        elif attributes.operation is _CREATE:
            changes = _ranked(attributes, spec, self._class_of(attributes, spec.get("priorityClassName") or ""))
        else:
            changes = _kept(spec, (attributes.old or {}).get("spec") or {})
        if changes:
            attributes.changed(self.name)

    def _class_of(self, attributes: Attributes, name: str) -> _Rank:
        """Return the PriorityClass of a pod; the default class if the pod names none."""
        if name:
            return _priority_class(attributes, name)
        view, known = attributes.view, self._default
        revision = view.revision
        if view is not known.view or revision != known.revision:
            classes = view.list(PRIORITY_CLASSES)
            rank = known.rank if classes == known.classes else _default_class(classes)
            self._default = known = _Default(view, revision, classes, rank)
        return known.rank

    def validate(self, attributes: Attributes) -> None:
        """Raise `Forbidden` if the write would create a second default class."""
        if not attributes.fields.get("globalDefault"):
            return
        name = attributes.fields["metadata"].get("name")
        for each in attributes.view.list(PRIORITY_CLASSES):
            is_other = attributes.operation is Verb.CREATE or each.name != name
            if is_other and each.view(_Class).global_default:
                detail = f"PriorityClass {each.name} is already marked as default. Only one default can exist"
                raise attributes.forbidden(detail)


def _kept(spec: dict[str, Any], before: Mapping[str, Any]) -> bool:
    """Copy computed fields that the new pod lacks from the old pod; return whether a field was copied."""
    left = [field for field in _COMPUTED if spec.get(field) is None and before.get(field) is not None]
    spec.update({field: before[field] for field in left})
    return bool(left)


def _ranked(attributes: Attributes, spec: dict[str, Any], found: _Rank) -> bool:
    """Set the fields that a new pod gets from its PriorityClass; return whether a field has changed."""
    class_name, priority, policy = found
    value, preemption = spec.get("priority"), spec.get("preemptionPolicy")
    computed = "must not be provided in pod spec; priority admission controller computed"
    if value is not None and value != priority:
        detail = f"the integer value of priority ({value}) {computed} {priority} from the given PriorityClass name"
        raise attributes.forbidden(detail)
    if preemption is not None and preemption != policy:
        message = f"the string value of PreemptionPolicy ({preemption})"
        raise attributes.forbidden(f"{message} {computed} {policy} from the given PriorityClass name")
    changes = value is None or preemption is None
    if class_name and spec.get("priorityClassName") != class_name:
        spec["priorityClassName"] = class_name
        changes = True
    spec["priority"], spec["preemptionPolicy"] = priority, policy
    return changes


def _ranked_group(attributes: Attributes, spec: dict[str, Any], found: _Rank) -> bool:
    """Set the fields that a new PodGroup gets from its PriorityClass; return True."""
    value = spec.get("priority")
    if value is not None and value != found.value:
        detail = f"must match the priority computed ({found.value}) based on the priority class set in the spec"
        raise attributes.forbidden(f"priority set in the pod group ({value}) {detail}")
    spec["priority"] = found.value
    if found.name:
        spec["priorityClassName"] = found.name
    return True


def _priority_class(attributes: Attributes, class_name: str) -> _Rank:
    found = attributes.view.get(PRIORITY_CLASSES, Key("", class_name))
    if found is not None:
        return _read_class(found)
    if class_name in _SYSTEM_CLASSES:
        return _Rank(class_name, _SYSTEM_CLASSES[class_name], _PREEMPTION_POLICY)
    raise attributes.forbidden(f"no PriorityClass with name {class_name} was found")


def _default_class(classes: Sequence[Object]) -> _Rank:
    defaults = [_read_class(each) for each in classes if each.view(_Class).global_default]
    return min(defaults, key=lambda each: each.value, default=_NO_CLASS)


def _read_class(found: Object) -> _Rank:
    read = found.view(_Class)
    return _Rank(found.name, read.value, read.preemption_policy or _PREEMPTION_POLICY)
