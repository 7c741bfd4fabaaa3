"""Runs the Service strategy on objects in a dict, in the way in which the engine's write path runs it.

The module calls a strategy in the order of the engine, and checks companion objects as strictly as the log: an ADDED
object must not exist, and a DELETED object must exist unchanged.
"""

from __future__ import annotations

import copy
import itertools
import json
import random
from collections.abc import Sequence
from typing import Any

from ctrlmgr.api.field import refuse
from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import SERVICES, Key, Resource
from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.engine.patch.merge_patch import merge_patch
from ctrlmgr.engine.strategy import Context
from ctrlmgr.engine.validation.object_meta import update_errors, validate_metadata
from ctrlmgr.errors import AlreadyExists, ApiError, Conflict, NotFound
from ctrlmgr.eventlog.event import EventType, Proposal
from ctrlmgr.kinds.allocators.allocation_claims import Claim
from ctrlmgr.kinds.allocators.service_ranges import IP_ADDRESSES, NODE_PORTS, Ranges
from ctrlmgr.kinds.builtin import builtin_kinds
from ctrlmgr.kinds.core.service.spec import holdings
from ctrlmgr.kinds.core.service.strategy import ServiceStrategy

NOW = "2024-05-01T12:00:00Z"
DUAL = Ranges.parse("10.96.0.0/16,fd00:10:96::/112", "30000-32767")
KIND = builtin_kinds().find("", "v1", "services")
assert KIND is not None


class Objects:
    """A `View` of the objects that a test stores."""

    def __init__(self) -> None:
        self.revision = 0
        self.objects: dict[tuple[Resource, Key], Object] = {}

    def get(self, resource: Resource, key: Key) -> Object | None:
        return self.objects.get((resource, key))

    def list(self, resource: Resource, namespace: str | None = None) -> Sequence[Object]:
        found = [obj for (each, key), obj in self.objects.items() if each == resource and namespace in (None, key[0])]
        return sorted(found, key=lambda obj: obj.key)

    def append(self, proposals: Sequence[Proposal]) -> None:
        """Apply all changes of a write, or none if one of them conflicts."""
        for proposal in proposals:
            place = (proposal.object.resource, proposal.object.key)
            if proposal.type is EventType.ADDED and place in self.objects:
                raise AlreadyExists(str(place))
            if proposal.type is not EventType.ADDED and self.objects[place].revision != proposal.expected:
                raise Conflict(str(place))
        for proposal in proposals:
            self.revision += 1
            place = (proposal.object.resource, proposal.object.key)
            if proposal.type is EventType.DELETED:
                del self.objects[place]
            else:
                self.objects[place] = proposal.object.at(self.revision)


class Stage:
    """A cluster that contains only Services and their allocations."""

    def __init__(self, ranges: Ranges = DUAL, seed: int = 1) -> None:
        self.strategy = ServiceStrategy(ranges)
        self.random = random.Random(seed)
        self.state = Objects()
        self.uids = itertools.count(1)
        self.companions: list[Proposal] = []
        """The warnings of the last write."""

    def context(self, *, old: Unstructured | None = None, subresource: str = "", dry_run: bool = False) -> Context:
        assert KIND is not None
        return Context(KIND, self.state, NOW, self.random, subresource=subresource, dry_run=dry_run, old=old)

    def get(self, name: str, namespace: str = "ns") -> Unstructured:
        obj = self.state.get(SERVICES, Key(namespace, name))
        if obj is None:
            raise NotFound(f'services "{name}" not found')
        return obj.to_dict()

    def create(self, spec: Unstructured, name: str = "s", *, dry_run: bool = False, **rest: Any) -> Unstructured:
        """Create a Service; `rest` contains further fields of the body, including fields of `metadata`."""
        metadata = {"name": name, "namespace": "ns"} | rest.pop("metadata", {})
        new = self.read({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec, **rest})
        new.pop("status", None)
        new["metadata"] |= {"uid": f"uid-{next(self.uids)}", "creationTimestamp": NOW}
        ctx = self.context(dry_run=dry_run)
        self.strategy.begin_create(ctx, new)
        self.strategy.prepare_for_create(ctx, new)
        errors = validate_metadata(new["metadata"], namespaced=True, name_check=self.strategy.name_check)
        self.refuse(new, errors + self.strategy.validate(ctx, new))
        if self.state.get(SERVICES, Key(metadata["namespace"], name)) is not None:
            raise AlreadyExists(f'services "{name}" already exists')
        return self.finish(ctx, EventType.ADDED, new, 0)

    def update(
        self, new: Unstructured, name: str = "s", *, subresource: str = "", dry_run: bool = False
    ) -> Unstructured:
        """Replace a Service; fields that the server sets are copied from the stored Service."""
        namespace = new.get("metadata", {}).get("namespace") or "ns"
        old = self.get(name, namespace)
        new = self.read(new)
        kept = {key: old["metadata"][key] for key in ("uid", "creationTimestamp", "namespace", "resourceVersion")}
        new["metadata"] |= kept
        ctx = self.context(old=old, subresource=subresource, dry_run=dry_run)
        before = copy.deepcopy(old)
        if subresource:
            new = old | {"status": new["status"]}
        else:
            new["status"] = old["status"]
        self.strategy.begin_update(ctx, new, old)
        self.strategy.prepare_for_update(ctx, new, old)
        errors = update_errors(
            new["metadata"],
            old["metadata"],
            namespaced=True,
            name_check=self.strategy.name_check,
            revalidated=0 if subresource else self.strategy.revalidates,
        )
        errors += self.strategy.validate(ctx, new) + self.strategy.validate_update(ctx, new, old)
        assert old == before, "a strategy leaves the old object alone"
        self.refuse(new, errors)
        return self.finish(ctx, EventType.MODIFIED, new, int(old["metadata"]["resourceVersion"]))

    def patch(self, patch: Unstructured, name: str = "s", *, namespace: str = "ns", **how: Any) -> Unstructured:
        """Change a Service with a merge patch."""
        return self.update(merge_patch(self.get(name, namespace), patch), name, **how)

    def delete(self, name: str = "s", namespace: str = "ns") -> None:
        obj = self.state.get(SERVICES, Key(namespace, name))
        if obj is None:
            raise NotFound(f'services "{name}" not found')
        ctx = self.context()
        self.strategy.begin_delete(ctx, obj)
        self.companions = ctx.companions
        self.state.append([Proposal(EventType.DELETED, obj, obj.revision), *ctx.companions])

    def read(self, body: Unstructured) -> Unstructured:
        """Decode and default a body."""
        assert KIND is not None
        fields = KIND.codec.decode(json.dumps(body).encode(), "application/json").fields
        self.strategy.default(fields)
        return fields

    def refuse(self, obj: Unstructured, errors: Sequence[Any]) -> None:
        if errors:
            raise refuse("Service", "", obj["metadata"].get("name") or "", errors)

    def finish(self, ctx: Context, type: EventType, new: Unstructured, expected: int) -> Unstructured:
        """Append the write, and return the object in the response."""
        assert KIND is not None
        new["metadata"].pop("resourceVersion", None)
        ctx.warnings += self.strategy.warnings(ctx, new, ctx.old)
        self.strategy.canonicalize(new)
        self.strategy.conceal(new)
        obj = Object(SERVICES, KIND.codec.encode(new))
        self.companions, self.warnings = ctx.companions, ctx.warnings
        if ctx.dry_run:
            return obj.to_dict()
        stored = self.state.get(SERVICES, obj.key)
        if stored is not None and stored.body == obj.body:
            assert not ctx.companions, "what changes nothing claims and releases nothing"
            return stored.to_dict()
        self.state.append([Proposal(type, obj, expected), *ctx.companions])
        return self.get(obj.name, obj.namespace)

    def claimed(self) -> dict[str, str]:
        """Return the owner of each allocated address or port."""
        claims = [*self.state.list(IP_ADDRESSES), *self.state.list(NODE_PORTS)]
        parents = {claim.name: claim.view(Claim).parent for claim in claims}
        return {name: f"{parent.namespace}/{parent.name}" for name, parent in parents.items() if parent is not None}

    def used(self) -> dict[str, str]:
        """Return the addresses and ports in the fields of Services; fail if two Services have the
        same address or port.
        """
        used: dict[str, str] = {}
        for obj in self.state.list(SERVICES):
            held = holdings(obj.to_dict())
            for name in [*held.addresses, *map(str, held.ports)]:
                assert name not in used, f"{name} is held twice"
                used[name] = str(obj.key)
        return used


def causes(error: ApiError) -> list[tuple[str, str]]:
    """Return the fields and messages of a refused write."""
    assert error.details is not None
    return [(cause.field, cause.message) for cause in error.details.causes]
