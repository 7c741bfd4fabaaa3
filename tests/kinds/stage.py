"""Runs the codec and strategy of a kind in the way in which the engine runs them, on objects that a test provides."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Mapping, Sequence
from random import Random
from typing import Any

from ctrlmgr.admission.admission_chain import Chain
from ctrlmgr.admission.plugins.default_ingress_class import DefaultIngressClass
from ctrlmgr.admission.plugins.default_storage_class import DefaultStorageClass
from ctrlmgr.admission.plugins.default_toleration_seconds import DefaultTolerationSeconds
from ctrlmgr.admission.plugins.persistent_volume_claim_resize import PersistentVolumeClaimResize
from ctrlmgr.admission.plugins.pod_priority import Priority
from ctrlmgr.admission.plugins.pod_topology_labels import PodTopologyLabels
from ctrlmgr.api.field import FieldError, refuse
from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key, Resource, Revision
from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.engine.admission_attributes import Attributes, Verb
from ctrlmgr.engine.features.dropping import drop_disabled
from ctrlmgr.engine.kind import Kind
from ctrlmgr.engine.request_options import Requester
from ctrlmgr.engine.strategy import Context, Strategy, View
from ctrlmgr.errors import Invalid
from ctrlmgr.kinds.builtin import builtin_kinds
from ctrlmgr.testing import FakeClock

NOW = "2026-01-02T03:04:05Z"
KINDS = builtin_kinds()


class Objects:
    """A `State` that contains given objects."""

    revision = 1

    def __init__(self, objects: Iterable[Object] = ()) -> None:
        self._objects = {(obj.resource, obj.key): obj for obj in objects}

    def put(self, *objects: Object) -> None:
        """Replace the content of the state with these objects, at the next revision."""
        self._objects = {(obj.resource, obj.key): obj for obj in objects}
        self.revision += 1

    def get(self, resource: Resource, key: Key) -> Object | None:
        return self._objects.get((resource, key))

    def list(self, resource: Resource, namespace: str | None = None) -> Sequence[Object]:
        found = [obj for (each, key), obj in self._objects.items() if each == resource]
        return [obj for obj in found if namespace in (None, obj.namespace)]

    def changed_at(self, resources: Iterable[Resource]) -> Revision:
        return self.revision


class ViewState:
    """A `State` with the objects of a `View`."""

    revision = 1

    def __init__(self, view: View) -> None:
        self.get, self.list = view.get, view.list

    def changed_at(self, resources: Iterable[Resource]) -> Revision:
        return self.revision


def find_kind(path: str) -> Kind:
    """Return the kind for a path such as `v1/pods` or `apps/v1/deployments`."""
    group_version, _, plural = path.rpartition("/")
    group, _, version = group_version.rpartition("/")
    kind = KINDS.find(group, version, plural)
    assert kind is not None, path
    return kind


CHAIN = Chain(
    [
        Priority(),
        DefaultTolerationSeconds(),
        DefaultStorageClass(),
        PersistentVolumeClaimResize(),
        DefaultIngressClass(),
        PodTopologyLabels(),
    ],
    FakeClock(),
)
"""The server configuration with which the expected responses were recorded."""


class Stage:
    """One kind, given by a path such as `v1/pods` or `apps/v1/deployments`, and the strategy of the kind."""

    def __init__(self, path: str, strategy: Strategy, *objects: Mapping[str, Any]) -> None:
        self.path, self.kind, self.strategy = path, find_kind(path), strategy
        self.strategy.has_status = "status" in self.kind.subresources
        self.view = Objects(Object.from_dict(each) for each in objects)
        self.warnings: list[str] = []

    def context(self, old: Unstructured | None = None, subresource: str = "", *, dry_run: bool = False) -> Context:
        return Context(self.kind, self.view, NOW, Random(1), subresource=subresource, dry_run=dry_run, old=old)

    def read(self, fields: Mapping[str, Any]) -> Unstructured:
        """Decode and default a body."""
        body = json.dumps({"apiVersion": self.kind.gvk.api_version, "kind": self.kind.name, **fields}).encode()
        decoded = self.kind.codec.decode(body, "application/json")
        assert not decoded.problems
        self.strategy.default(decoded.fields)
        once = copy.deepcopy(decoded.fields)
        self.strategy.default(decoded.fields)
        assert decoded.fields == once, "defaulting twice changes nothing more"
        return decoded.fields

    def create(self, fields: Mapping[str, Any]) -> Unstructured:
        """Create an object, with the name `x` if it has none; return the object's stored form."""
        new = self.read({**fields, "metadata": {"name": "x", **fields.get("metadata", {})}})
        new["metadata"].setdefault("namespace", "default")
        new["metadata"]["uid"] = "uid-1"
        ctx = self.context()
        attributes = self._attributes(ctx, Verb.CREATE, new)
        for _ in CHAIN.admit(attributes):
            raise AssertionError("no plugin waits for anything")
        self.strategy.begin_create(ctx, new)
        if self.strategy.has_status and not self.strategy.status_on_create:
            new.pop("status", None)
        drop_disabled(self.kind.resource.group, self.kind.name, new, None)
        self.strategy.prepare_for_create(ctx, new)
        if self.strategy.has_generation:
            new["metadata"]["generation"] = 1
        self._refuse(new, self.strategy.validate(ctx, new))
        self.warnings = [*ctx.warnings, *self.strategy.warnings(ctx, new, None)]
        self.strategy.canonicalize(new)
        self.strategy.conceal(new)
        return self.stored(new)

    def update(self, old: Unstructured, changes: Mapping[str, Any], subresource: str = "") -> Unstructured:
        """Merge `changes` into `old` (None removes a field), and return the stored form of the result."""
        new = self.read(merged(copy.deepcopy(old), changes))
        before = copy.deepcopy(old)
        ctx = self.context(old, subresource)
        attributes = self._attributes(ctx, Verb.UPDATE, new, old)
        for _ in CHAIN.admit(attributes):
            raise AssertionError("no plugin waits for anything")
        self.strategy.begin_update(ctx, new, old)
        if subresource == "status":
            for field in new.keys() | old.keys():
                if field not in ("metadata", "status"):
                    _keep(new, old, field)
        elif not subresource and self.strategy.has_status:
            _keep(new, old, "status")
        drop_disabled(self.kind.resource.group, self.kind.name, new, old)
        self.strategy.prepare_for_update(ctx, new, old)
        desires = [{key: each[key] for key in each if key not in ("metadata", "status")} for each in (new, old)]
        if self.strategy.has_generation and subresource != "status" and desires[0] != desires[1]:
            new["metadata"]["generation"] = old["metadata"]["generation"] + 1
        self._refuse(new, self.strategy.validate(ctx, new) + self.strategy.validate_update(ctx, new, old))
        for _ in CHAIN.validate(attributes):
            raise AssertionError("no plugin waits for anything")
        self.warnings = [*ctx.warnings, *self.strategy.warnings(ctx, new, old)]
        assert old == before, "the old object is nobody's to change"
        return self.stored(new)

    def refusal(self, fields: Mapping[str, Any]) -> list[tuple[str, str]]:
        """Return the fields and messages of a refused create; the list is empty if the create is accepted."""
        return _causes(lambda: self.create(fields))

    def update_refusal(
        self, old: Unstructured, changes: Mapping[str, Any], subresource: str = ""
    ) -> list[tuple[str, str]]:
        """Return the fields and messages of a refused update; the list is empty if the update is accepted."""
        return _causes(lambda: self.update(old, changes, subresource))

    def stored(self, fields: Unstructured) -> Unstructured:
        """Return an object in the form in which the log returns it."""
        read: Unstructured = json.loads(self.kind.codec.encode(fields))
        return read

    def _attributes(
        self, ctx: Context, operation: Verb, new: Unstructured, old: Unstructured | None = None
    ) -> Attributes:
        metadata = new["metadata"]
        return Attributes(
            self.kind,
            self.kind.resource,
            "",
            metadata["name"],
            operation,
            Requester("alice"),
            ViewState(ctx.view),
            ctx.now,
            ctx.random,
            new,
            old,
            ctx.subresource,
            warnings=ctx.warnings,
        )

    def _refuse(self, fields: Unstructured, errors: list[FieldError]) -> None:
        if errors:
            raise refuse(self.kind.name, self.kind.resource.group, fields["metadata"].get("name", ""), errors)


def staged(path: str, *objects: Mapping[str, Any]) -> Stage:
    """Return the kind at a path with the kind's strategy, and with stored objects."""
    kind = find_kind(path)
    return Stage(path, copy.copy(kind.strategy), *objects)


def _causes(write: Any) -> list[tuple[str, str]]:
    try:
        write()
    except Invalid as error:
        return [(cause.field, cause.message) for cause in error.details.causes] if error.details else []
    return []


def _keep(new: Unstructured, old: Unstructured, field: str) -> None:
    if field in old:
        new[field] = copy.deepcopy(old[field])
    else:
        new.pop(field, None)


def merged(document: Any, patch: Any) -> Any:
    """Apply a JSON merge patch (RFC 7396)."""
    if not isinstance(patch, Mapping):
        return patch
    result = dict(document) if isinstance(document, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result
