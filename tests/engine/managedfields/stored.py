"""A stored object for tests of field managers in managedFields. Each write to the object has a different time."""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

from ctrlmgr.engine.managedfields import FieldManager, keep_timestamps
from ctrlmgr.engine.patch import merge_patch
from ctrlmgr.schema.definitions import Definitions
from tests.engine.stage import builtin_kinds

CORE = "io.k8s.api.core.v1"
APPS = "io.k8s.api.apps.v1"


class ManagedEntry(NamedTuple):
    """One entry of managedFields, without the parts that are the same in all tests."""

    manager: str
    operation: str
    fields: Any
    time: str | None = None
    subresource: str = ""


def field_manager(definition: str, api_version: str = "v1") -> FieldManager:
    kinds = builtin_kinds()
    resets = next(
        (kind.resets for kind in kinds if (kind.definition, kind.gvk.api_version) == (definition, api_version)), None
    )
    return FieldManager(Definitions.builtin().schema(definition), api_version, resets=resets)


class StoredObject:
    """A stored object, or a key for which no object exists yet."""

    def __init__(self, definition: str = f"{CORE}.ConfigMap", api_version: str = "v1") -> None:
        self.kind = definition.rpartition(".")[2]
        self.api_version = api_version
        self.manager = field_manager(definition, api_version)
        self.codec = Definitions.builtin().codec(self.kind, api_version, definition)
        self.object: dict[str, Any] | None = None
        self.writes = 0
        self.asked = 0

    def now(self) -> str:
        self.asked += 1
        return f"2024-01-01T00:00:{self.asked:02}Z"

    def body(self, name: str = "one", **fields: Any) -> dict[str, Any]:
        metadata = {"name": name, **fields.pop("metadata", {})}
        return {"apiVersion": self.api_version, "kind": self.kind, "metadata": metadata, **fields}

    def apply(self, manager: str, *, force: bool = False, subresource: str = "", **fields: Any) -> list[ManagedEntry]:
        """Apply a body with these fields; if the apply raises an error, the object stays unchanged."""
        body, live = self.body(**fields), copy.deepcopy(self.object)
        result = self.manager.apply(live, body, manager, self.now(), force=force, subresource=subresource)
        assert (body, live) == (self.body(**fields), self.object)
        return self.write(result)

    def merge(self, manager: str, *, subresource: str = "", **patch: Any) -> list[ManagedEntry]:
        """Change the object with a merge patch."""
        assert self.object is not None
        return self.update(manager, merge_patch(self.object, patch), subresource=subresource)

    def update(self, manager: str, new: dict[str, Any], *, subresource: str = "") -> list[ManagedEntry]:
        """Replace the object with a PUT, or create it if it does not exist."""
        new, live = self.codec.read(copy.deepcopy(new)).fields, copy.deepcopy(self.object)
        before = copy.deepcopy(new)
        result = self.manager.update(live, new, manager, self.now(), subresource)
        assert (new, live) == (before, self.object)
        return self.write(result)

    def write(self, fields: dict[str, Any]) -> list[ManagedEntry]:
        new = self.codec.read(copy.deepcopy(fields)).fields
        if self.object is not None:
            new = keep_timestamps(self.object, new)
        if new != self.object:
            self.writes += 1
            self.object = new
        return self.managed

    @property
    def managed(self) -> list[ManagedEntry]:
        entries = (self.object or {}).get("metadata", {}).get("managedFields", [])
        for entry in entries:
            assert entry["fieldsType"] == "FieldsV1"
            assert entry["apiVersion"] == self.api_version
        return [
            ManagedEntry(
                each["manager"], each["operation"], each["fieldsV1"], each.get("time"), each.get("subresource", "")
            )
            for each in entries
        ]

    def __getitem__(self, name: str) -> Any:
        return (self.object or {}).get(name)


def fields(*names: str, under: str = "data") -> dict[str, Any]:
    """Return the set of the managed fields in `data`, or in another top-level field."""
    return {f"f:{under}": {f"f:{name}": {} for name in names}}
