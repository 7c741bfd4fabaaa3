"""The common part of validating and mutating policies: matches policies to writes, and finds their parameters.

Source: apiserver `pkg/admission/plugin/policy/generic`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from ctrlmgr.admission.policies.params import NotConfigured, param_kind, params_of
from ctrlmgr.admission.policies.policy_parsing import Binding, PolicyBase
from ctrlmgr.admission.webhooks.webhook_selection import selected_kind
from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.engine.admission_attributes import Attributes
from ctrlmgr.engine.kind import Kind
from ctrlmgr.engine.kind_registry import Kinds
from ctrlmgr.engine.operations import Operation
from ctrlmgr.errors import InternalError, NotFound

GROUP: Final = "admissionregistration.k8s.io"
_EXEMPT: Final = frozenset(
    f"{kind}admissionpolic{end}" for kind in ("validating", "mutating") for end in ("ies", "ybindings")
)
UNCONFIGURED: Final = (NotConfigured, NotFound, InternalError)
"""The errors that are raised if a policy or binding is misconfigured."""


def is_policy(attributes: Attributes) -> bool:
    """Return whether the write changes a policy or a binding; policies do not apply to such writes."""
    return attributes.resource.group == GROUP and attributes.resource.plural in _EXEMPT


class PolicyKinds(NamedTuple):
    """The kind to which the object is converted for a policy, and the kind of the policy's parameters."""

    kind: Kind
    params: Kind | None


def concern_of(policy: PolicyBase, attributes: Attributes, kinds: Kinds) -> PolicyKinds | None:
    """Return the kinds of the object and the parameters for an evaluation; None if the policy does not match the write.

    Raises one of the errors in `UNCONFIGURED` if the policy is misconfigured.
    """
    kind = selected_kind(policy.matching, attributes, kinds)
    return PolicyKinds(kind, param_kind(policy.param_kind, kinds)) if kind is not None else None


def parameters(
    binding: Binding, concern: PolicyKinds, attributes: Attributes, kinds: Kinds
) -> Operation[Sequence[Unstructured | None]]:
    """Return the parameters for a binding; the policy is evaluated once for each parameter object.

    Raises one of the errors in `UNCONFIGURED` if the binding is misconfigured.
    """
    if binding.matching is not None and selected_kind(binding.matching, attributes, kinds) is None:
        return ()
    return (yield from params_of(binding, concern.params, attributes))
