"""What policies of both kinds have in common when they look at a write: whether it concerns them, with what parameters.

Source: apiserver `pkg/admission/plugin/policy/generic`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from ctrlmgr.admission.policies.params import NotConfigured, param_kind, params_of
from ctrlmgr.admission.policies.reading import Binding, PolicyBase
from ctrlmgr.admission.webhooks.matching import selected_kind
from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.engine.attributes import Attributes
from ctrlmgr.engine.kind import Kind
from ctrlmgr.engine.kinds import Kinds
from ctrlmgr.engine.operations import Operation
from ctrlmgr.errors import InternalError, NotFound

GROUP: Final = "admissionregistration.k8s.io"
_EXEMPT: Final = frozenset(
    f"{kind}admissionpolic{end}" for kind in ("validating", "mutating") for end in ("ies", "ybindings")
)
UNCONFIGURED: Final = (NotConfigured, NotFound, InternalError)
"""What is raised where a policy or a binding cannot be put into effect."""


def is_policy(attributes: Attributes) -> bool:
    """Whether the write is about a policy or a binding, which no policy has a say in."""
    return attributes.resource.group == GROUP and attributes.resource.plural in _EXEMPT


class Concern(NamedTuple):
    """As what a policy sees the object, and the kind of its parameters."""

    kind: Kind
    params: Kind | None


def concern_of(policy: PolicyBase, attributes: Attributes, kinds: Kinds) -> Concern | None:
    """Return how a write concerns a policy, None if it does not; raises one of `UNCONFIGURED`."""
    kind = selected_kind(policy.matching, attributes, kinds)
    return Concern(kind, param_kind(policy.param_kind, kinds)) if kind is not None else None


def parameters(
    binding: Binding, concern: Concern, attributes: Attributes, kinds: Kinds
) -> Operation[Sequence[Unstructured | None]]:
    """Return with what a policy is evaluated for a binding, once for each; raises one of `UNCONFIGURED`."""
    if binding.matching is not None and selected_kind(binding.matching, attributes, kinds) is None:
        return ()
    return (yield from params_of(binding, concern.params, attributes))
