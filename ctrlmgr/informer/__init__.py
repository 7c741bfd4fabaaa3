"""The caches of the log: a bounded history that all readers share, and stores that follow that history.

An event passes the modules in this order: The log commits the event and passes it to the `EventWindow`. `Informers`
read the event from this window, with one cursor for all informers. The `Informer` of the event's resource applies the
event to its `Store` and calls the handlers. Reconcilers read the store through a `Lister`.
"""

from ctrlmgr.informer.event_window import EventWindow, Feed
from ctrlmgr.informer.informer import Change, Informer, Informers
from ctrlmgr.informer.quarantine import Quarantine
from ctrlmgr.informer.store import Lister, Store

__all__ = ["Change", "EventWindow", "Feed", "Informer", "Informers", "Lister", "Quarantine", "Store"]
