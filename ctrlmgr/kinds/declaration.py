"""What one file says of a built-in kind, beyond what the published discovery and schema of Kubernetes say."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import NamedTuple

from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.engine.managedfields.reset_fields import Filter
from ctrlmgr.engine.strategy import Strategy
from ctrlmgr.engine.tables.printer import CREATED_AT, Printer


class StoredAs(NamedTuple):
    """The kind that another one is stored as, and the way there and back; both keep the object's metadata."""

    api_version: str
    kind: str
    to_stored: Callable[[Unstructured], Unstructured]
    from_stored: Callable[[Unstructured], Unstructured]


@dataclass(frozen=True)
class Declaration:
    """One version of one kind; what is not declared is what most kinds have."""

    api_version: str
    kind: str
    _: KW_ONLY
    strategy: Strategy | None = field(default=None)
    """None: that of the kind it is stored as, or else what most kinds do."""
    printer: Printer = CREATED_AT
    """The columns of its table."""
    resets: Mapping[str, Filter] | None = None
    """What a write cannot change, by subresource; None: `status` if it has one; by `/status` the spec, and what
    its strategy says (`status_keeps`)."""
    deprecation: str = ""
    """What a client is told who uses it (apiserver `pkg/endpoints/deprecation`)."""
    stored_as: StoredAs | None = None
    registry_path: str = ""
    """Where Kubernetes' storage keeps it, if that is not its plural."""
    unused: str = ""
    """What does not happen although objects of the kind are stored, as one phrase; empty if something acts on them."""
    stored_version: str = ""
    """The version that Kubernetes 1.36 stores it in, where that is one it serves no more; its hash is of that."""
