"""The ValidatingAdmissionPolicy status controller: writes type errors of CEL expressions to policies' statuses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from ctrlmgr.api.resource import Resource
from ctrlmgr.controllers.descriptor import ControllerDescriptor
from ctrlmgr.settings.setting_declaration import Setting
from ctrlmgr.settings.setting_types import whole


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of the ValidatingAdmissionPolicy status controller."""

    concurrent_validating_admission_policy_status_syncs: Annotated[
        int,
        whole(1),
        Setting(
            "The number of ValidatingAdmissionPolicies that are type-checked concurrently.",
            flag="--concurrent-validating-admission-policy-status-syncs",
            metavar="COUNT",
        ),
    ] = 5


DESCRIPTOR = ControllerDescriptor(
    name="validatingadmissionpolicy-status-controller",
    aliases=("validatingadmissionpolicy-status",),
    does="type-checks the expressions of ValidatingAdmissionPolicies, and writes warnings to their status",
    watches=(Resource("admissionregistration.k8s.io", "validatingadmissionpolicies"),),
    builder="ctrlmgr.controllers.validatingadmissionpolicy_status.controller:build",
    options=Options,
)
"""The declaration of the controller: its name and the function that builds it."""
