"""The composition root: settings in, a running process out. The only package that knows everyone."""

from ctrlmgr.serve.application import Application
from ctrlmgr.serve.controllers import CONTROLLERS, enabled_controllers
from ctrlmgr.serve.process import serve

__all__ = ["CONTROLLERS", "Application", "enabled_controllers", "serve"]
