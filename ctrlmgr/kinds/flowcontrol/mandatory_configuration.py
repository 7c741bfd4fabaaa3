"""The mandatory FlowSchemas and priority levels: `exempt`, whose requests are never queued, and `catch-all`.

Source: Kubernetes `pkg/apis/flowcontrol/internalbootstrap` and `staging/src/k8s.io/apiserver/pkg/apis/flowcontrol`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from ctrlmgr.api.field import FieldError, Path, invalid
from ctrlmgr.kinds.spec_difference import shown

EXEMPT: Final = "exempt"
CATCH_ALL: Final = "catch-all"
EVERYTHING: Final = {
    "resourceRules": [
        {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "clusterScope": True, "namespaces": ["*"]}
    ],
    "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
}
"""The FlowSchema rules that match every request."""


def groups(*names: str) -> list[dict[str, Any]]:
    """Return FlowSchema subjects for the groups with these names."""
    return [{"kind": "Group", "group": {"name": name}} for name in names]


def schema(
    level: str, precedence: int, method: str, subjects: Sequence[Mapping[str, Any]], rules: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the spec of a FlowSchema with one rule.

    The argument `method` is the distinguisher method; it is empty if there is no distinguisher method.
    """
    return {
        "priorityLevelConfiguration": {"name": level},
        "matchingPrecedence": precedence,
        **({"distinguisherMethod": {"type": method}} if method else {}),
        "rules": [{"subjects": list(subjects), **rules}],
    }


FLOW_SCHEMAS: Final[Mapping[str, Mapping[str, Any]]] = {
    EXEMPT: schema(EXEMPT, 1, "", groups("system:masters"), EVERYTHING),
    CATCH_ALL: schema(
        CATCH_ALL, 10_000, "ByUser", groups("system:unauthenticated", "system:authenticated"), EVERYTHING
    ),
}
PRIORITY_LEVELS: Final[Mapping[str, Mapping[str, Any]]] = {
    EXEMPT: {"type": "Exempt"},
    CATCH_ALL: {
        "type": "Limited",
        "limited": {"nominalConcurrencyShares": 5, "lendablePercent": 0, "limitResponse": {"type": "Reject"}},
    },
}
"""The specs of the mandatory priority levels, without the fields that users may change.

For example, users may change the share of seats that an exempt priority level lends.
"""


def validate_fixed(type_: str, spec: Mapping[str, Any], fixed: Mapping[str, Any], what: str) -> list[FieldError]:
    """Refuse a spec that differs from the mandatory spec.

    The argument `type_` is the Go type of the spec, and `what` describes the object.
    """
    if spec == fixed:
        return []
    return [invalid(Path("spec"), shown(type_, spec), f"{what} must equal the fixed value")]
