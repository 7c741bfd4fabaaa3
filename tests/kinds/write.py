"""Runs one write through a strategy as the engine does: defaults, preparation, validation, warnings, final form."""

from __future__ import annotations

import copy
import json
from random import Random
from typing import Any, NamedTuple, cast

from ctrlmgr.api.field import FieldError
from ctrlmgr.api.object import Object
from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.engine.kind import Kind
from ctrlmgr.engine.strategy import Context, Strategy, View
from ctrlmgr.engine.validation.object_meta import update_errors
from ctrlmgr.engine.verbs.create import errors_of_new


class WriteResult(NamedTuple):
    """The result of a write through a strategy."""

    object: Unstructured
    errors: list[FieldError]
    warnings: list[str]

    @property
    def messages(self) -> list[str]:
        return [error.message for error in self.errors]


def context(*, old: Unstructured | None = None, subresource: str = "", user: str = "") -> Context:
    """Return a context for strategies that use neither their kind nor other objects."""
    nothing = cast(Any, None)
    return Context(
        kind=cast(Kind, nothing),
        view=cast(View, nothing),
        now="2024-05-01T12:00:00Z",
        random=Random(7),
        user=user,
        subresource=subresource,
        old=old,
    )


def create(strategy: Strategy, fields: Unstructured, *, namespaced: bool = True, user: str = "") -> WriteResult:
    """Create an object; objects of namespaced kinds are in the namespace `ns` by default."""
    ctx = context(user=user)
    new = copy.deepcopy(fields)
    metadata: dict[str, Any] = new.setdefault("metadata", {})
    if namespaced:
        metadata.setdefault("namespace", "ns")
    strategy.default(new)
    strategy.prepare_for_create(ctx, new)
    if not metadata.get("name") and metadata.get("generateName"):
        metadata["name"] = f"{metadata['generateName']}x7f2k"
    errors = errors_of_new(ctx, strategy, new, namespaced=namespaced)
    warnings = strategy.warnings(ctx, new, None)
    strategy.canonicalize(new)
    strategy.conceal(new)
    return WriteResult(new, errors, warnings)


def update(
    strategy: Strategy, old: Unstructured, change: Unstructured, *, namespaced: bool = True, subresource: str = ""
) -> WriteResult:
    """Change top-level fields of a stored object; the value None removes a field."""
    old = copy.deepcopy(old)
    old["metadata"].setdefault("uid", "u")
    old["metadata"].setdefault("resourceVersion", "5")
    new = copy.deepcopy({**old, **change})
    new = {key: value for key, value in new.items() if value is not None}
    ctx = context(old=old, subresource=subresource)
    strategy.default(new)
    strategy.prepare_for_update(ctx, new, old)
    errors = update_errors(
        new["metadata"],
        old["metadata"],
        namespaced=namespaced,
        name_check=strategy.name_check,
        revalidated=0 if subresource else strategy.revalidates,
        compared=strategy.compares_metadata,
        any_finalizer=strategy.any_finalizer,
    )
    errors += strategy.validate(ctx, new) + strategy.validate_update(ctx, new, old)
    warnings = strategy.warnings(ctx, new, old)
    strategy.canonicalize(new)
    strategy.conceal(new)
    return WriteResult(new, errors, warnings)


def stored(api_version: str, kind: str, fields: Unstructured) -> Object:
    """Return an object in the form in which the log stores it."""
    head = {"kind": kind, "apiVersion": api_version}
    return Object.from_wire(json.dumps({**head, **fields}).encode())
