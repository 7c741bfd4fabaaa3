"""The ServiceAccount token controller: fills Secrets of type `kubernetes.io/service-account-token`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from ctrlmgr.api.resource import Resource
from ctrlmgr.controllers.descriptor import MANAGER, ControllerDescriptor
from ctrlmgr.settings import Setting
from ctrlmgr.settings.setting_types import whole


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of the ServiceAccount token controller."""

    concurrent_serviceaccount_token_syncs: Annotated[
        int,
        whole(1),
        Setting(
            "The number of service accounts and Secrets that are reconciled concurrently.",
            flag="--concurrent-serviceaccount-token-syncs",
            metavar="COUNT",
        ),
    ] = 5


DESCRIPTOR = ControllerDescriptor(
    name="serviceaccount-token-controller",
    acts_as=MANAGER,
    aliases=("serviceaccount-token",),
    does=(
        "writes tokens into Secrets of type `kubernetes.io/service-account-token`, and deletes "
        "Secrets of deleted accounts"
    ),
    watches=(Resource("", "serviceaccounts"), Resource("", "secrets")),
    builder="ctrlmgr.controllers.serviceaccount_token.controller:build",
    options=Options,
    starts_first=True,
)
"""The declaration of the controller: its name and the function that builds it."""
