"""Subresources that are things of their own: `scale`, `binding`, `eviction`.

The others (`status`, `finalize`, `approval`, `resize`, `ephemeralcontainers`) are their object, written to in another
way: the engine's usual verbs, with `Context.subresource` telling the strategy.
"""

from __future__ import annotations

from collections.abc import Mapping

from ctrlmgr.engine.subresources.binding import BindingHandler
from ctrlmgr.engine.subresources.eviction import EvictionHandler
from ctrlmgr.engine.subresources.handler import Handler
from ctrlmgr.engine.subresources.scale import ScaleHandler

SUBRESOURCES: Mapping[str, Handler] = {
    "binding": BindingHandler(),
    "eviction": EvictionHandler(),
    "scale": ScaleHandler(),
}
"""Their handlers, by name."""

__all__ = ["SUBRESOURCES", "Handler"]
