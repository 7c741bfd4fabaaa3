"""Declares built-in kinds.

A declaration contains the properties of a kind that are not in Kubernetes' discovery documents and schemas.
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
    """The kind as which another kind is stored, with the conversions in both directions.

    The conversions do not change the metadata of objects.
    """

    api_version: str
    kind: str
    to_stored: Callable[[Unstructured], Unstructured]
    from_stored: Callable[[Unstructured], Unstructured]


def renamed(api_version: str) -> Callable[[Unstructured], Unstructured]:
    """Return the conversion to a version that has the same fields as the other version."""
    return lambda fields: {**fields, "apiVersion": api_version}


def same_as(stored: str, kind: str, api_version: str) -> StoredAs:
    """Return how a version is stored that has the same fields as the version `stored`."""
    return StoredAs(stored, kind, renamed(stored), renamed(api_version))


@dataclass(frozen=True)
class Declaration:
    """The declaration of one version of a kind; the default values of its fields are right for most kinds."""

    api_version: str
    kind: str
    _: KW_ONLY
    strategy: Strategy | None = field(default=None)
    """The strategy of the kind. If `strategy` is None, the kind has the strategy of the stored kind, or the common
    strategy if no stored kind exists.
    """
    printer: Printer = CREATED_AT
    """The columns of the kind's table in `kubectl get`."""
    resets: Mapping[str, Filter] | None = None
    """The fields that a write cannot change, keyed by the subresource of the write.

    If `status` is None, a write to the object cannot change the status. A write to `/status` can then change neither
    the spec nor the fields in the strategy's `status_keeps`.
    """
    deprecation: str = ""
    """The name of the kind in Kubernetes' storage; empty if it is the plural of the kind."""
    stored_as: StoredAs | None = None
    registry_path: str = ""
    """The name of the kind in Kubernetes' storage; None if it is the plural of the kind."""
    unused: str = ""
    """A phrase that describes the effect of objects of this kind that is missing, because no controller acts on them.

    The phrase is empty if a controller acts on objects of the kind.
    """
    feature_gate: str = ""
    """The feature gate without which the kind is not served; empty if there is none."""
    stored_version: str = ""
    """The version in which Kubernetes 1.36 stores the kind; None if this version is also served.

    The stored version determines the storage version hash of the kind in discovery.
    """
