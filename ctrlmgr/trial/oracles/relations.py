"""Relations between objects: owners, and objects that the operator made for a custom resource.

An object belongs to a custom resource if it has an owner reference to the resource. It also belongs to the resource if
its name, a label or an annotation contains the name of the resource as a whole word.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import DEFINITIONS, Resource
from ctrlmgr.trial.oracles.kept_log import KeptLog, State


def custom_resources(log: KeptLog) -> frozenset[Resource]:
    """Return the resources that the CustomResourceDefinitions of a run define."""
    names = {each.object.name for each in log.events if each.resource == DEFINITIONS}
    return frozenset(Resource.parse(name) for name in names)


def owners_in(state: State, obj: Object) -> Iterator[Object]:
    """Yield the existing owners of an object, then their owners, and so on."""
    by_uid = {each.uid: each for each in state.values()}
    waiting, seen = [obj], {obj.uid}
    while waiting:
        for reference in waiting.pop().metadata.owner_references or ():
            owner = by_uid.get(reference.uid)
            if owner is not None and owner.uid not in seen:
                seen.add(owner.uid)
                waiting.append(owner)
                yield owner


def belongs_to(obj: Object, custom: Object) -> bool:
    """Return whether an object names a custom resource: by an owner reference, its name, a label or an annotation."""
    if any(each.uid == custom.uid for each in obj.metadata.owner_references or ()):
        return True
    if obj.namespace and custom.namespace and obj.namespace != custom.namespace:
        return False
    texts = (obj.name, obj.namespace, *obj.labels.values(), *obj.annotations.values())
    pattern = _word(custom.name)
    return any(pattern.search(each) for each in texts)


@lru_cache(maxsize=256)
def _word(name: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![A-Za-z0-9]){re.escape(name)}(?![A-Za-z0-9])")
