"""The declaration of a built-in kind.

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
    """The kind as which another kind is stored, and the conversions; both conversions keep the object's metadata."""

    api_version: str
    kind: str
    to_stored: Callable[[Unstructured], Unstructured]
    from_stored: Callable[[Unstructured], Unstructured]


@dataclass(frozen=True)
class Declaration:
    """One version of one kind; the defaults of the fields are right for most kinds."""

    api_version: str
    kind: str
    _: KW_ONLY
    strategy: Strategy | None = field(default=None)
    """The strategy; None for the strategy of the stored kind if there is one, otherwise for the common strategy."""
    printer: Printer = CREATED_AT
    """The columns of the kind's table."""
    resets: Mapping[str, Filter] | None = None
    """The fields that a write cannot change, by subresource.

    If this is None, a write cannot change the `status`, and a write to `/status` cannot change the spec and the
    strategy's `status_keeps`.
    """
    deprecation: str = ""
    """The text of the warning for clients that use this version (apiserver `pkg/endpoints/deprecation`)."""
    stored_as: StoredAs | None = None
    registry_path: str = ""
    """The name of the kind in Kubernetes' storage, if that is not the plural."""
    unused: str = ""
    """A phrase that says what does not happen, if objects are only stored and no controller uses them.

    Otherwise empty.
    """
    stored_version: str = ""
    """The version in which Kubernetes 1.36 stores the kind, if that version is no longer served.

    The storage version hash in discovery is computed from this version.
    """
