"""The engine: get, list, watch, create, update, patch and delete, once for every kind.

In the order a request meets them: `engine` has the verbs; `plan` is what is compiled per kind; `reading` answers from
the cacher; `attempts` decides, appends and decides again; `creation`, `change` and `patching` make a new state of an
object, `deletion` says how one goes. Everything is decided on the cacher's state and settled by the log, whose appends
are conditional: who decided on something old is refused there and decides again.
"""

from ctrlmgr.resources.engine.engine import Engine

__all__ = ["Engine"]
