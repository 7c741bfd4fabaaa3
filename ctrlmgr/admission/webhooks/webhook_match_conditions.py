"""Evaluates the match conditions of a webhook for a write.

Source: apiserver `pkg/admission/plugin/webhook/generic/webhook.go` (`ShouldCallHook`).
"""

from __future__ import annotations

from ctrlmgr.admission.expressions.authorizer_expressions import answering
from ctrlmgr.admission.expressions.cel_evaluation import Budget, ConditionsFailed, met
from ctrlmgr.admission.expressions.inputs import input_of
from ctrlmgr.admission.webhooks.webhook_selection import Invocation
from ctrlmgr.authorization.authorizer import Authorizer
from ctrlmgr.engine.admission_attributes import Attributes
from ctrlmgr.engine.api_errors import forbidden
from ctrlmgr.engine.kind_registry import Kinds
from ctrlmgr.engine.operations import Operation
from ctrlmgr.expressions.costs import MATCH_LIMIT
from ctrlmgr.expressions.library.authorizing import Ask


def meets_match_conditions(
    invocation: Invocation, attributes: Attributes, kinds: Kinds, authorizer: Authorizer
) -> Operation[bool]:
    """Return whether a write meets the match conditions of a webhook.

    Raises `Forbidden` if a condition raises an error and the failure policy is Fail.
    """
    hook = invocation.hook
    if not hook.conditions:
        return True
    seen = yield from input_of(attributes, invocation.kind, kinds)

    def meets(ask: Ask) -> bool:
        return met(hook.conditions, seen.variables(ask), Budget(MATCH_LIMIT), fails_open=hook.fails_open)

    try:
        return (yield from answering(meets, authorizer, attributes))
    except ConditionsFailed as problem:
        raise forbidden(attributes.resource, attributes.name, str(problem)) from problem
