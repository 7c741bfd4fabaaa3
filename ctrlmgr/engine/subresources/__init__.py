"""Subresources whose bodies have another kind than the object: `scale`, `binding`, `eviction`.

Writes to other subresources (`status`, `finalize`, `approval`, `resize`, `ephemeralcontainers`) are partial writes of
the object. Subresources without a handler use the engine's usual verbs; the strategy reads the subresource from
`Context.subresource`.
"""

from __future__ import annotations

from collections.abc import Mapping

from ctrlmgr.engine.subresources.binding import BindingHandler
from ctrlmgr.engine.subresources.eviction import EvictionHandler
from ctrlmgr.engine.subresources.handler import Handler
from ctrlmgr.engine.subresources.scale_subresource import ScaleHandler

SUBRESOURCES: Mapping[str, Handler] = {
    "binding": BindingHandler(),
    "eviction": EvictionHandler(),
    "scale": ScaleHandler(),
}
"""The handlers of subresources, by the subresource's name."""

__all__ = ["SUBRESOURCES", "Handler"]
