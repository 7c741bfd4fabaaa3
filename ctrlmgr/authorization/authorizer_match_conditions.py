"""CEL conditions of authorization webhooks: a webhook is called only if its conditions are true for the request.

Guarantees: an expression can read the `spec` of a SubjectAccessReview of `authorization.k8s.io/v1`, even if requests to
the webhook use another version. In expressions, empty fields of the SubjectAccessReview are present.

Source: apiserver `pkg/authorization/cel/{compile,matcher}.go`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from ctrlmgr.authentication.user import User
from ctrlmgr.authorization.attributes import Attributes, review_of
from ctrlmgr.authorization.authorizer import aggregate
from ctrlmgr.expressions.configured_expressions import compiled, value_of
from ctrlmgr.expressions.declarations import Functions
from ctrlmgr.expressions.environment import Environment, Expression, NoValue
from ctrlmgr.expressions.types import BOOL, STRING, DeclaredObjects, list_of, map_of, struct

_TEXTS: Final = list_of(STRING)
_SELECTOR: Final = {"rawSelector": STRING, "requirements": list_of(struct("kubernetes.SelectorRequirement"))}
_REQUEST: Final = "kubernetes.SubjectAccessReviewSpec"
_OBJECTS: Final = DeclaredObjects(
    {
        _REQUEST: {
            "resourceAttributes": struct("kubernetes.ResourceAttributes"),
            "nonResourceAttributes": struct("kubernetes.NonResourceAttributes"),
            "user": STRING,
            "groups": _TEXTS,
            "extra": map_of(STRING, _TEXTS),
            "uid": STRING,
        },
        "kubernetes.ResourceAttributes": {
            "namespace": STRING,
            "verb": STRING,
            "group": STRING,
            "version": STRING,
            "resource": STRING,
            "subresource": STRING,
            "name": STRING,
            "fieldSelector": struct("kubernetes.FieldSelectorAttributes"),
            "labelSelector": struct("kubernetes.LabelSelectorAttributes"),
        },
        "kubernetes.NonResourceAttributes": {"path": STRING, "verb": STRING},
        "kubernetes.FieldSelectorAttributes": _SELECTOR,
        "kubernetes.LabelSelectorAttributes": _SELECTOR,
        "kubernetes.SelectorRequirement": {"key": STRING, "operator": STRING, "values": _TEXTS},
    }
)


class ConditionCompiler:
    """Compiles conditions."""

    def __init__(self, functions: Functions) -> None:
        """Create a compiler whose expressions may call `functions`."""
        self._environment = Environment({"request": struct(_REQUEST)}, functions, _OBJECTS)

    def compile(self, source: str) -> Expression:
        """Compile a match condition; raises `ValueError` if the condition is invalid."""
        return compiled(self._environment, source, BOOL)


def are_met(conditions: Iterable[Expression], user: User, attributes: Attributes) -> bool:
    """Return whether a request meets all conditions; raises `NoValue` if a condition cannot be evaluated.

    If one condition is false, the function returns False, even if other conditions cannot be evaluated.
    """
    seen = {"request": _request(user, attributes)}
    problems: list[str] = []
    for condition in conditions:
        try:
            if value_of(condition, seen) is False:
                return False
        except NoValue as error:
            problems.append(f"cel evaluation error: {error}")
    if problems:
        raise NoValue(aggregate(problems))
    return True


def _request(user: User, attributes: Attributes) -> dict[str, Any]:
    return {
        "user": user.name,
        "groups": list(user.groups),
        "uid": user.uid,
        "extra": {key: list(values) for key, values in user.extra.items()},
        **review_of(attributes),
    }
