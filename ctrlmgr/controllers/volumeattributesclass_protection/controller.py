"""The VolumeAttributesClass protection controller: delays the deletion of a class while a volume or claim uses it.

Guarantees, as in Kubernetes (`pkg/controller/volume/vacprotection/vac_protection_controller.go`):
- A volume uses the class in its spec. A claim uses the class in its spec, its current class
  (`status.currentVolumeAttributesClassName`) and the target of a modification
  (`status.modifyVolumeStatus.targetVolumeAttributesClassName`).
- A class that is not being deleted has the protection finalizer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from ctrlmgr.admission.quota.volume_claim_evaluator import attributes_classes
from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key, Resource
from ctrlmgr.controllers.assembly import assemble
from ctrlmgr.controllers.descriptor import ControllerContext, NoOptions
from ctrlmgr.controllers.protection import Protector
from ctrlmgr.controllers.volumeattributesclass_protection import DESCRIPTOR
from ctrlmgr.informer import Change
from ctrlmgr.manager import Controller, Watch

CLASSES: Final = Resource("storage.k8s.io", "volumeattributesclasses")
VOLUMES: Final = Resource("", "persistentvolumes")
CLAIMS: Final = Resource("", "persistentvolumeclaims")
FINALIZER: Final = "kubernetes.io/vac-protection"
_INDEX: Final = "volumeAttributesClassName"
_FIELD: Final = b"olumeAttributesClassName"
"""The JSON of every volume or claim that uses a class contains this byte sequence."""


def classes_of(obj: Object) -> frozenset[str]:
    """Return the names of the VolumeAttributesClasses that a volume or claim uses.

    The function does not decode an object without a class.
    """
    if not obj.mentions(_FIELD):
        return frozenset()
    fields: dict[str, Any] = obj.to_dict()
    if obj.resource == VOLUMES:
        fields.pop("status", None)
    return frozenset(attributes_classes(fields))


def released_by(change: Change) -> Iterator[Key]:
    """Yield the keys of the classes that a changed or deleted volume or claim no longer uses."""
    before = change.old if change.new is not None else change.object
    left = frozenset() if change.new is None else classes_of(change.new)
    for name in sorted((classes_of(before) if before is not None else frozenset()) - left):
        yield Key("", name)


def build(context: ControllerContext, options: NoOptions) -> Controller:
    """Build the controller from its context and options."""
    classes, *users = (context.informers.informer(each) for each in (CLASSES, VOLUMES, CLAIMS))
    for each in users:
        each.add_index(_INDEX, _names)
    protector = Protector(classes.lister, FINALIZER, _is_named(*(each.lister.by_index for each in users)))
    watches = [Watch(classes, protector.concerned), *(Watch(each, released_by) for each in users)]
    return assemble(DESCRIPTOR, context, protector, watches)


def _names(obj: Object) -> list[str]:
    return sorted(classes_of(obj))


def _is_named(*lookups: Callable[[str, str], Any]) -> Callable[[Object], bool]:
    """Return a function that returns whether any volume or claim uses a class.

    Each function in `lookups` takes an index and a value, and returns the matching objects.
    """
    return lambda obj: any(lookup(_INDEX, obj.name) for lookup in lookups)
