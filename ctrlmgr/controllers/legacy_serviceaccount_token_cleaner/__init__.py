"""The legacy ServiceAccount token cleaner: invalidates and later deletes auto-generated tokens that are not used."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from ctrlmgr.api.resource import PODS, Resource
from ctrlmgr.controllers.descriptor import ControllerDescriptor
from ctrlmgr.settings import DURATION, Setting


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of the legacy ServiceAccount token cleaner."""

    legacy_service_account_token_clean_up_period: Annotated[
        float,
        DURATION,
        Setting(
            "The time for which an auto-generated service account token must be unused before it is invalidated; "
            "it is deleted later.",
            flag="--legacy-service-account-token-clean-up-period",
            metavar="DURATION",
        ),
    ] = 31_536_000.0


DESCRIPTOR = ControllerDescriptor(
    name="legacy-serviceaccount-token-cleaner-controller",
    aliases=("legacy-service-account-token-cleaner",),
    account="legacy-service-account-token-cleaner",
    does="deletes auto-generated token Secrets that were not used for a year",
    watches=(Resource("", "secrets"), Resource("", "serviceaccounts"), PODS),
    builder="ctrlmgr.controllers.legacy_serviceaccount_token_cleaner.controller:build",
    options=Options,
)
"""The declaration of the controller: its name and the function that builds it."""
