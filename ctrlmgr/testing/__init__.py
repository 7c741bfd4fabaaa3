"""What ctrlmgr is tested with, for those who test their own controllers.

`Harness` is a control plane in the test itself, on virtual time; `every_interleaving` runs one for each order in which
things may happen. `FakeClock` stands in for the machine's clock wherever a `Clock` is asked for. `builders` make
objects. `plugin` is pytest's: recordings as tests (`replays`), and a control plane for a test (`served`).
"""

from importlib import import_module as _import_module

from ctrlmgr.testing.clock import FakeClock

__all__ = ["FakeClock", "Harness", "every_interleaving"]  # the others are loaded when they are asked for

_PUBLIC = {"Harness": "ctrlmgr.testing.harness", "every_interleaving": "ctrlmgr.testing.interleavings"}


def __getattr__(name: str) -> object:
    """Load what is public when it is first asked for."""
    if name not in _PUBLIC:
        raise AttributeError(f"module 'ctrlmgr.testing' has no attribute {name!r}")
    found: object = getattr(_import_module(_PUBLIC[name]), name)
    globals()[name] = found
    return found
