"""The resources of flow control, and the rule that decides which priority levels can receive requests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ctrlmgr.api.resource import Resource
from ctrlmgr.kinds.flowcontrol.mandatory_configuration import EXEMPT

FLOW_SCHEMAS: Final = Resource("flowcontrol.apiserver.k8s.io", "flowschemas")
LEVELS: Final = Resource("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations")


def is_usable(name: str, spec: Mapping[str, Any]) -> bool:
    """Return whether requests can be assigned to a priority level.

    Validation refuses most priority levels for which the result is False.

    Source: apiserver `pkg/util/flowcontrol/apf_controller.go` (`queueSetCompleterForPL`).
    """
    type_, limited = spec.get("type"), spec.get("limited")
    if (type_ == "Limited") != (limited is not None) or (type_ == "Exempt") != (spec.get("exempt") is not None):
        return False
    if (type_ == "Exempt") != (name == EXEMPT):
        return False
    response = (limited or {}).get("limitResponse") or {}
    return limited is None or (response.get("type") == "Reject") == (response.get("queuing") is None)
