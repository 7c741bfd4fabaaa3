"""The composition root: settings in, a running process out. The only package that knows everyone."""

from ctrlmgr.serve.application import Application, serve
from ctrlmgr.serve.controllers import CONTROLLERS, enabled_controllers

__all__ = ["CONTROLLERS", "Application", "enabled_controllers", "serve"]
