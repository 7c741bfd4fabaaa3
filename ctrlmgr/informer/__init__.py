"""Caches of the log: one bounded history that all read, and stores that follow it.

In the order an event travels: the log commits it and tells the `WatchCache`; `Informers` read it from there
at their one cursor; the `Informer` of its resource puts it into its `Store` and tells its handlers; what
reconciles reads the store through a `Lister`.
"""

from ctrlmgr.informer.informer import Change, Informer, Informers
from ctrlmgr.informer.quarantine import Quarantine
from ctrlmgr.informer.store import Lister, Store
from ctrlmgr.informer.watchcache import Feed, WatchCache

__all__ = ["Change", "Feed", "Informer", "Informers", "Lister", "Quarantine", "Store", "WatchCache"]
