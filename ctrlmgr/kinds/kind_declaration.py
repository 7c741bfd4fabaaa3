"""Declares built-in kinds.

A declaration contains those properties of the kind that Kubernetes' discovery documents and schemas do not contain.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import NamedTuple

from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.engine.managedfields.reset_fields import Filter
from ctrlmgr.engine.strategy import Strategy
from ctrlmgr.engine.tables.table_printer import CREATED_AT, Printer


class StoredAs(NamedTuple):
    """The kind as which another kind is stored, with both conversions, which do not change the object's metadata."""

    api_version: str
    kind: str
    to_stored: Callable[[Unstructured], Unstructured]
    from_stored: Callable[[Unstructured], Unstructured]


def renamed(api_version: str) -> Callable[[Unstructured], Unstructured]:
    """Return the conversion to a version that has the same fields as the other version."""
    return lambda fields: {**fields, "apiVersion": api_version}


def same_as(stored: str, kind: str, api_version: str) -> StoredAs:
    """Return how a version is stored whose fields are those of the version `stored`."""
    return StoredAs(stored, kind, renamed(stored), renamed(api_version))


@dataclass(frozen=True)
class Declaration:
    """The declaration of one version of a kind; the default values of its fields are right for most kinds."""

    api_version: str
    kind: str
    _: KW_ONLY
    strategy: Strategy | None = field(default=None)
    """The strategy of the kind; if it is None, the stored kind's strategy is used or, without a stored kind, the common
    strategy.
    """
    printer: Printer = CREATED_AT
    """The columns of the kind's table in `kubectl get`."""
    resets: Mapping[str, Filter] | None = None
    """The fields that a write cannot change, by the subresource to which it is made.

    If this field is None, a write cannot change the `status`, and a write to `/status` cannot change the spec and the
    strategy's `status_keeps`.
    """
    deprecation: str = ""
    """The warning for clients that use this version (apiserver `pkg/endpoints/deprecation`)."""
    stored_as: StoredAs | None = None
    registry_path: str = ""
    """The name of the kind in Kubernetes' storage; None if it is the plural."""
    unused: str = ""
    """A phrase that says what does not happen if no controller acts on objects of this kind.

    Otherwise empty.
    """
    feature_gate: str = ""
    """The feature gate without which the kind is not served; empty if there is none."""
    stored_version: str = ""
    """The version in which Kubernetes 1.36 stores the kind; None if it is a version that is served.

    Discovery's storage version hash of the kind is computed from this version.
    """
