"""Runs controllers and other runnables, and defines the order of their start and stop.

An event passes these modules in the following order. A handler of an informer puts keys on the controller's queue
(`controller.Watch`). A worker takes a key and calls the `reconcile_result.Reconciler`. The result or error of the
reconciler decides whether the key is queued again. `change_priority` returns the urgency of a change, and `periodic`
queues keys at intervals. `runnable.Manager` starts and stops all runnables of a process. `process_hooks` registers
functions that run after the start and before the stop of a process.
"""

from ctrlmgr.manager.change_priority import priority_of
from ctrlmgr.manager.controller import Controller, Watch, own_key
from ctrlmgr.manager.periodic import Periodic
from ctrlmgr.manager.process_hooks import Hooks
from ctrlmgr.manager.reconcile_result import Reconciler, Result, StartsWith
from ctrlmgr.manager.runnable import GRACE, HasSynced, Manager, Phase, Runnable

__all__ = [
    "GRACE",
    "Controller",
    "HasSynced",
    "Hooks",
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
