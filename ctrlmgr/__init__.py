"""An event-sourced controller manager: a Kubernetes control plane that stores its state in an event log only.

The packages are listed in the order in which an event travels through them:

- `api`: API objects with their names, metadata and bodies.
- `eventlog`: the totally ordered log of changes, on SQLite, PostgreSQL or in memory. All other packages read the log.
- `informer`: the event window, a bounded history that all readers share, and the caches derived from it.
- `workqueue`: the queue of the keys to reconcile; only one worker at a time reconciles a key.
- `manager`: runs controllers (watches, queue, workers) and periodic work, and starts and stops a process in phases.
- `controllers`: the controllers' decisions as pure functions, and the reconcilers that write them through `client`.
- `framework`: defines the kinds and controllers that users write.
- `recording`: writes a real cluster's watch stream to a file, and replays it.
- `server`: the Kubernetes API, health and metrics over HTTP.
- `serve`, `cli`: create the running process from its settings.

`__all__` lists the public names of the package; most public names are defined in `framework`. Each public name is
loaded at its first use, so the import of this package is fast. The package `ctrlmgr.testing` is public, too.
"""

from importlib import import_module as _import_module

__version__ = "0.1.0"

_PUBLIC = {
    "AlreadyExists": "ctrlmgr.errors",
    "ApiError": "ctrlmgr.errors",
    "App": "ctrlmgr.framework.app",
    "Cache": "ctrlmgr.framework.cached_objects",
    "Client": "ctrlmgr.framework.typed_client",
    "Column": "ctrlmgr.framework.class_declaration",
    "Condition": "ctrlmgr.framework.typed_kinds",
    "Conflict": "ctrlmgr.errors",
    "Context": "ctrlmgr.framework.reconcile_context",
    "Invalid": "ctrlmgr.errors",
    "Key": "ctrlmgr.api.resource",
    "Kind": "ctrlmgr.framework.typed_kinds",
    "Meta": "msgspec",
    "Metadata": "ctrlmgr.framework.typed_kinds",
    "Model": "ctrlmgr.framework.typed_kinds",
    "NodeInfo": "ctrlmgr.scheduling.cluster_model",
    "NotFound": "ctrlmgr.errors",
    "PodInfo": "ctrlmgr.scheduling.cluster_model",
    "Refused": "ctrlmgr.framework.app_admission",
    "Result": "ctrlmgr.manager.reconcile_result",
    "Scale": "ctrlmgr.framework.class_declaration",
    "Status": "ctrlmgr.framework.typed_kinds",
    "TerminalError": "ctrlmgr.errors",
    "Untyped": "ctrlmgr.framework.typed_kinds",
    "Watch": "ctrlmgr.framework.app",
    "Write": "ctrlmgr.framework.app_admission",
    "definition_of": "ctrlmgr.framework.derived_definition",
}

__all__ = ["__version__", *sorted(_PUBLIC)]  # The names that `__getattr__` loads.


def __getattr__(name: str) -> object:
    """Load a public name of the package at its first use."""
    if name not in _PUBLIC:
        raise AttributeError(f"module 'ctrlmgr' has no attribute {name!r}")
    found: object = getattr(_import_module(_PUBLIC[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    """Return all public names, including the names that are not loaded yet."""
    return sorted({*globals(), *__all__})
