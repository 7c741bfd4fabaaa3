"""Creates a running process from its settings, and connects the components of the process.

Only the package `serve` may import all other packages.
"""

from ctrlmgr.serve.application import Application
from ctrlmgr.serve.serving_process import serve

__all__ = ["Application", "serve"]
