"""The composition root: creates a running process from its settings.

Only this package may import all other packages.
"""

from ctrlmgr.serve.application import Application
from ctrlmgr.serve.serving_process import serve

__all__ = ["Application", "serve"]
