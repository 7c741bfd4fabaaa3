"""Contains the test tools of ctrlmgr, which are also for tests of users' controllers.

`Harness` is a control plane in the process of the test, with virtual time. `every_interleaving` runs a harness for each
possible order of events. `FakeClock` is a `Clock` that replaces the machine's clock. `builders` create objects.
`plugin` is a pytest plugin. The plugin runs recordings as tests (`replays`), and runs a control plane for a test
(`served`).
"""

from importlib import import_module as _import_module

from ctrlmgr.testing.fake_clock import FakeClock

__all__ = ["FakeClock", "Harness", "every_interleaving"]  # The other names are loaded at their first use.

_PUBLIC = {"Harness": "ctrlmgr.testing.harness", "every_interleaving": "ctrlmgr.testing.interleavings"}


def __getattr__(name: str) -> object:
    """Load a public name of the package at its first use."""
    if name not in _PUBLIC:
        raise AttributeError(f"module 'ctrlmgr.testing' has no attribute {name!r}")
    found: object = getattr(_import_module(_PUBLIC[name]), name)
    globals()[name] = found
    return found
