"""Records the permissions that controllers use in tests, from every write in every harness of the process.

Guarantees: a write that is refused or fails is also recorded. Reads are not recorded, because controllers read caches.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from ctrlmgr.api.object import Object
from ctrlmgr.framework.app_permissions import Right

_VERBS: Final = {"status": ("patch",), "apply": ("create", "patch")}
"""The RBAC verbs for each verb of a client; verbs that are missing here have the same name in RBAC. The verb apply
needs several RBAC verbs, because an apply may create an object.
"""

OBSERVED: Final[set[tuple[str, Right]]] = set()
"""The observed permissions: pairs of a user and a permission that the user has used."""


def observe(user: str, verb: str, obj: Object, subresource: str = "") -> None:
    """Record the right that a write of a controller needs."""
    part = "status" if verb == "status" else subresource
    name = f"{obj.resource.plural}/{part}" if part else obj.resource.plural
    for each in _VERBS.get(verb, (verb,)):
        OBSERVED.add((user, Right(obj.resource.group, name, each)))


def save(file: Path) -> None:
    """Append the observed permissions to a file, one permission per line."""
    lines = [json.dumps([user, *right]) for user, right in sorted(OBSERVED)]
    with file.open("a", encoding="utf-8") as to:
        to.writelines(f"{line}\n" for line in lines)


def load(file: Path) -> set[tuple[str, Right]]:
    """Return the permissions that test processes have saved."""
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    found = (json.loads(line) for line in lines)
    return {(user, Right(*right)) for user, *right in found}
