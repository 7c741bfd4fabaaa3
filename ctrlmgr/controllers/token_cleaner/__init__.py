"""The token cleaner: deletes expired bootstrap tokens."""

from __future__ import annotations

from ctrlmgr.api.resource import Resource
from ctrlmgr.controllers.descriptor import ControllerDescriptor, NoOptions

DESCRIPTOR = ControllerDescriptor(
    name="token-cleaner-controller",
    aliases=("tokencleaner",),
    account="token-cleaner",
    does="deletes expired bootstrap tokens",
    watches=(Resource("", "secrets"),),
    builder="ctrlmgr.controllers.token_cleaner.controller:build",
    options=NoOptions,
    enabled_by_default=False,
)
"""The declaration of the controller: its name and the function that builds it."""
