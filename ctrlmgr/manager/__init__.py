"""What runs: controllers, what they wait for, and the order in which things start and stop.

In the order an event travels: an informer's handler puts keys on the controller's queue (`controller.Watch`); a
worker takes one and calls the `reconcile.Reconciler`; what that returns or raises decides, in one place, whether
the key comes again. `priority` says how urgent a change is, and `periodic` puts keys on queues because time has passed.
`runnable.Manager` starts all of it.
"""

from ctrlmgr.manager.controller import Controller, Watch, own_key
from ctrlmgr.manager.periodic import Periodic
from ctrlmgr.manager.priority import priority_of
from ctrlmgr.manager.reconcile import Reconciler, Result, StartsWith
from ctrlmgr.manager.runnable import HasSynced, Manager, Phase, Runnable

__all__ = [
    "Controller",
    "HasSynced",
    "Manager",
    "Periodic",
    "Phase",
    "Reconciler",
    "Result",
    "Runnable",
    "StartsWith",
    "Watch",
    "own_key",
    "priority_of",
]
