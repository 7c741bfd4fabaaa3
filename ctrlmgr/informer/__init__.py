"""Caches of the log: a bounded history that all readers share, and stores that follow that history.

In the order an event travels: the log commits it and calls the `WatchCache`. `Informers` read the event from the watch
cache at one cursor. The `Informer` of the event's resource applies it to its `Store` and calls the handlers.
Reconcilers read the store through a `Lister`.
"""

from ctrlmgr.informer.event_window import Feed, WatchCache
from ctrlmgr.informer.informer import Change, Informer, Informers
from ctrlmgr.informer.quarantine import Quarantine
from ctrlmgr.informer.store import Lister, Store

__all__ = ["Change", "Feed", "Informer", "Informers", "Lister", "Quarantine", "Store", "WatchCache"]
