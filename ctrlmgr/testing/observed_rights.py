"""The rights that controllers use in tests: every write of every harness of the process is noted.

Guarantees: a write that is refused or fails is noted, too, for it was tried. Reads are not: controllers read caches.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from ctrlmgr.api.object import Object
from ctrlmgr.framework.app_permissions import Right

_VERBS: Final = {"status": ("patch",), "apply": ("create", "patch")}
"""By verb of a client the verbs of RBAC; the others have their own names. An apply may create."""

OBSERVED: Final[set[tuple[str, Right]]] = set()
"""Each user with a right that it has used."""


def observe(user: str, verb: str, obj: Object, subresource: str = "") -> None:
    """Note a write of a controller."""
    part = "status" if verb == "status" else subresource
    name = f"{obj.resource.plural}/{part}" if part else obj.resource.plural
    for each in _VERBS.get(verb, (verb,)):
        OBSERVED.add((user, Right(obj.resource.group, name, each)))


def save(file: Path) -> None:
    """Add what was observed to a file, a line for each right."""
    lines = [json.dumps([user, *right]) for user, right in sorted(OBSERVED)]
    with file.open("a", encoding="utf-8") as to:
        to.writelines(f"{line}\n" for line in lines)


def load(file: Path) -> set[tuple[str, Right]]:
    """Return what processes have saved."""
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    found = (json.loads(line) for line in lines)
    return {(user, Right(*right)) for user, *right in found}
