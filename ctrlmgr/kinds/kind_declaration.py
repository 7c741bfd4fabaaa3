"""The declaration of a built-in kind: its properties beyond Kubernetes' published discovery and schema."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import NamedTuple

from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.engine.managedfields.reset_fields import Filter
from ctrlmgr.engine.strategy import Strategy
from ctrlmgr.engine.tables.table_printer import CREATED_AT, Printer


class StoredAs(NamedTuple):
    """The kind that another kind is stored as, and the conversions; both keep the object's metadata."""

    api_version: str
    kind: str
    to_stored: Callable[[Unstructured], Unstructured]
    from_stored: Callable[[Unstructured], Unstructured]


@dataclass(frozen=True)
class Declaration:
    """One version of one kind; the defaults of the fields are those of most kinds."""

    api_version: str
    kind: str
    _: KW_ONLY
    strategy: Strategy | None = field(default=None)
    """None stands for the strategy of the kind it is stored as, or else for the common strategy."""
    printer: Printer = CREATED_AT
    """The columns of its table."""
    resets: Mapping[str, Filter] | None = None
    """The fields that a write cannot change, by subresource.

    None stands for: the `status` if the kind has one, and for `/status` the spec and `status_keeps` of the strategy.
    """
    deprecation: str = ""
    """The text of the warning to clients that use it (apiserver `pkg/endpoints/deprecation`)."""
    stored_as: StoredAs | None = None
    registry_path: str = ""
    """The name in Kubernetes' storage, if it is not the plural."""
    unused: str = ""
    """A phrase for the missing effect of objects that are only stored; empty if something acts on them."""
    stored_version: str = ""
    """The version in the storage of Kubernetes 1.36 if it is no longer served.

    The storage version hash in discovery is computed from this version.
    """
