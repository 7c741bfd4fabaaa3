"""The mandatory flow schemas and priority levels: `exempt`, which is never queued, and `catch-all`.

Source: Kubernetes `pkg/apis/flowcontrol/internalbootstrap` and `staging/src/k8s.io/apiserver/pkg/apis/flowcontrol`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ctrlmgr.api.field import FieldError, Path, invalid
from ctrlmgr.kinds.spec_difference import shown

EXEMPT: Final = "exempt"
_CATCH_ALL: Final = "catch-all"
_EVERYTHING: Final = {
    "resourceRules": [
        {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "clusterScope": True, "namespaces": ["*"]}
    ],
    "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
}


def _groups(*names: str) -> list[dict[str, Any]]:
    return [{"kind": "Group", "group": {"name": f"system:{name}"}} for name in names]


FLOW_SCHEMAS: Final[Mapping[str, Mapping[str, Any]]] = {
    EXEMPT: {
        "priorityLevelConfiguration": {"name": EXEMPT},
        "matchingPrecedence": 1,
        "rules": [{"subjects": _groups("masters"), **_EVERYTHING}],
    },
    _CATCH_ALL: {
        "priorityLevelConfiguration": {"name": _CATCH_ALL},
        "matchingPrecedence": 10_000,
        "distinguisherMethod": {"type": "ByUser"},
        "rules": [{"subjects": _groups("unauthenticated", "authenticated"), **_EVERYTHING}],
    },
}
PRIORITY_LEVELS: Final[Mapping[str, Mapping[str, Any]]] = {
    EXEMPT: {"type": "Exempt"},
    _CATCH_ALL: {
        "type": "Limited",
        "limited": {"nominalConcurrencyShares": 5, "lendablePercent": 0, "limitResponse": {"type": "Reject"}},
    },
}
"""Their specs, without the number of seats that exempt levels may lend, which can be configured."""


def validate_fixed(type_: str, spec: Mapping[str, Any], fixed: Mapping[str, Any], what: str) -> list[FieldError]:
    """Refuse a spec that differs from the fixed one; `type_` is its Go type, and `what` describes its owner."""
    if spec == fixed:
        return []
    return [invalid(Path("spec"), shown(type_, spec), f"{what} must equal the fixed value")]
