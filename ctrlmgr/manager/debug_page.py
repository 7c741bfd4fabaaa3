"""The debug pages of a controller, which show administrators the state in its memory.

A reconciler that is `Debuggable` returns the pages that its controller's descriptor names in `debug_pages`. Any thread
may request a page at any time, even if the controller has not started or the process is not the leader.

Source: controller-manager `pkg/interface.go` (`Debuggable`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol, TypeAlias, runtime_checkable


class DebugPage(NamedTuple):
    """The content of a debug page, and the media type of the content."""

    media_type: str
    body: str


Query: TypeAlias = Mapping[str, Sequence[str]]
"""The query parameters of a request, with all values of each name."""


@runtime_checkable
class Debuggable(Protocol):
    """A reconciler with debug pages."""

    def debug_page(self, name: str, query: Query) -> DebugPage:
        """Return the page `name`, which must be one of the descriptor's `debug_pages`."""
