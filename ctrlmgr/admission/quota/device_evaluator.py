"""Measures ResourceClaims: counts the claims, and the devices that they request from each device class.

Rules come from Kubernetes' `pkg/quota/v1/evaluator/core/resource_claims.go`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

from ctrlmgr.admission.quota.evaluator import Evaluator, Fields
from ctrlmgr.admission.quota.quota_amounts import Amounts
from ctrlmgr.engine.admission_attributes import Verb

_COUNT: Final = "count/resourceclaims.resource.k8s.io"
_OF_CLASS: Final = ".deviceclass.resource.k8s.io/devices"
_MOST: Final = 32
"""The maximum number of devices in one ResourceClaim.

The maximum is charged if the claim requests all devices.
"""


class ResourceClaimEvaluator(Evaluator):
    """Evaluates ResourceClaims."""

    def handles(self, subresource: str, operation: Verb) -> bool:
        """Return whether writes of this kind may increase the usage: creations and updates of ResourceClaims."""
        return operation in (Verb.CREATE, Verb.UPDATE) and not subresource

    def names(self, given: Collection[str]) -> list[str]:
        """Return the given resource names that ResourceClaims use."""
        return [name for name in given if name == _COUNT or name.endswith(_OF_CLASS)]

    def usage(self, fields: Fields, now: str) -> Amounts:
        """Return the amounts that a ResourceClaim uses.

        If a request has alternatives, the largest number of devices of each class counts.
        """
        devices: dict[str, int] = {}
        for request in ((fields.get("spec") or {}).get("devices") or {}).get("requests") or ():
            for class_, number in _requested_devices(request).items():
                devices[class_] = devices.get(class_, 0) + number
        return {_COUNT: "1"} | {class_ + _OF_CLASS: str(number) for class_, number in devices.items()}


def _requested_devices(request: Mapping[str, Any]) -> dict[str, int]:
    alternatives = request.get("firstAvailable") or ()
    # In v1beta1, the request itself contains the fields of an exact request.
    exact = request.get("exactly") or (request if request.get("deviceClassName") else None)
    most: dict[str, int] = {}
    for each in [exact] if exact else alternatives:
        class_ = each.get("deviceClassName") or ""
        mode = each.get("allocationMode") or "ExactCount"
        number = _MOST if mode == "All" else each.get("count") or (1 if mode == "ExactCount" else 0)
        most[class_] = max(most.get(class_, 0), number)
    return most
