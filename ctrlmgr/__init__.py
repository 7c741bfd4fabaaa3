"""An event-sourced controller manager: a Kubernetes control plane whose only memory is an event log.

The packages in the order an event travels:

- `api`: what an object is: names, metadata, bodies.
- `eventlog`: the one totally ordered log of changes, on SQLite, PostgreSQL or in memory. Everything else reads it.
- `informer`: the watch cache, the one bounded history that all readers share, and the caches folded from it.
- `workqueue`: which keys need a look, each by one worker at a time.
- `manager`: controllers (watches, queue, workers), periodic work, and the phases things start and stop in.
- `controllers`: what is decided, as pure functions, and the reconcilers that act on it through `client`.
- `framework`: kinds and controllers of one's own.
- `recording`: a real cluster's watch stream as a file, and its replay through all of the above.
- `server`: health and metrics over HTTP.
- `serve`, `cli`: settings in, a running process out.

What is public stands in `__all__`, and comes from `framework`; it is loaded when it is first asked for, so that
importing this package costs nothing. `ctrlmgr.testing` is public, too.
"""

from importlib import import_module as _import_module

__version__ = "0.1.0"

_PUBLIC = {
    "AlreadyExists": "ctrlmgr.errors",
    "ApiError": "ctrlmgr.errors",
    "App": "ctrlmgr.framework.app",
    "Cache": "ctrlmgr.framework.reading",
    "Client": "ctrlmgr.framework.client",
    "Column": "ctrlmgr.framework.declaration",
    "Condition": "ctrlmgr.framework.model",
    "Conflict": "ctrlmgr.errors",
    "Context": "ctrlmgr.framework.context",
    "Invalid": "ctrlmgr.errors",
    "Key": "ctrlmgr.api.resource",
    "Kind": "ctrlmgr.framework.model",
    "Meta": "msgspec",
    "Metadata": "ctrlmgr.framework.model",
    "Model": "ctrlmgr.framework.model",
    "NotFound": "ctrlmgr.errors",
    "Refused": "ctrlmgr.framework.admission",
    "Result": "ctrlmgr.manager.reconcile",
    "Scale": "ctrlmgr.framework.declaration",
    "Status": "ctrlmgr.framework.model",
    "TerminalError": "ctrlmgr.errors",
    "Untyped": "ctrlmgr.framework.model",
    "Watch": "ctrlmgr.framework.app",
    "Write": "ctrlmgr.framework.admission",
    "definition_of": "ctrlmgr.framework.definition",
}

__all__ = ["__version__", *sorted(_PUBLIC)]  # names that `__getattr__` finds


def __getattr__(name: str) -> object:
    """Load what is public when it is first asked for."""
    if name not in _PUBLIC:
        raise AttributeError(f"module 'ctrlmgr' has no attribute {name!r}")
    found: object = getattr(_import_module(_PUBLIC[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    """Return what is public, loaded or not."""
    return sorted({*globals(), *__all__})
