"""Subresources whose bodies have another kind than their object: `scale`, `binding`, `eviction`.

The others (`status`, `finalize`, `approval`, `resize`, `ephemeralcontainers`) are partial writes of their object. They
use the engine's usual verbs, and `Context.subresource` tells the strategy.
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
"""The handlers, by the subresource's name."""

__all__ = ["SUBRESOURCES", "Handler"]
