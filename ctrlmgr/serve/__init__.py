"""The composition root: settings in, a running process out. The only package that knows all others."""

from ctrlmgr.serve.application import Application
from ctrlmgr.serve.process import serve

__all__ = ["Application", "serve"]
