"""The debug pages of a controller, which show administrators the state in its memory.

A reconciler that is `Debuggable` offers the pages that its controller's descriptor names in `debug_pages`. Any thread
may call the reconciler for a page, while its controller runs, is not the leader, or has not started.

Source: controller-manager `pkg/interface.go` (`Debuggable`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol, TypeAlias, runtime_checkable


class DebugPage(NamedTuple):
    """The content of a page, and its media type."""

    media_type: str
    body: str


Query: TypeAlias = Mapping[str, Sequence[str]]
"""The query parameters of a request, with all values of each name."""


@runtime_checkable
class Debuggable(Protocol):
    """A reconciler with debug pages."""

    def debug_page(self, name: str, query: Query) -> DebugPage:
        """Return the page with this name, one of the descriptor's `debug_pages`."""
