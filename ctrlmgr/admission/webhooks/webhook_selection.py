"""Selects the webhooks and policies for a write, and the version of the object that they see.

Guarantees: if the rules of a webhook name another version of the resource, the webhook gets the object converted to
that version. Webhooks are never called for writes of the objects that configure admission.

Rules come from apiserver's `pkg/admission/plugin/webhook/{generic,predicates}` and
`pkg/admission/plugin/policy/matching/matching.go`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

from ctrlmgr.admission.webhooks.hooks import Hook, Rule
from ctrlmgr.api.resource import NAMESPACES
from ctrlmgr.engine.admission_attributes import Attributes, Verb
from ctrlmgr.engine.api_errors import not_found
from ctrlmgr.engine.kind import Kind
from ctrlmgr.engine.kind_registry import Kinds
from ctrlmgr.engine.selectors.label_selector_parser import LabelSelector
from ctrlmgr.errors import InternalError

_EXEMPT = frozenset(
    (
        "ValidatingWebhookConfiguration",
        "MutatingWebhookConfiguration",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
        "MutatingAdmissionPolicy",
        "MutatingAdmissionPolicyBinding",
    )
)


class Selection(Protocol):
    """The match rules of a webhook, a policy, or a binding."""

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rules that select the matching resources."""

    @property
    def excluded(self) -> tuple[Rule, ...]:
        """The rules that exclude resources; they take precedence over the rules that select resources."""

    @property
    def matches_equivalent(self) -> bool:
        """Return whether other versions of the resources in the rules match the write, too."""

    @property
    def namespaces(self) -> LabelSelector | None:
        """The namespace selector; None if the selector is invalid, in which case no write matches."""

    @property
    def objects(self) -> LabelSelector | None:
        """The object selector; None if the selector is invalid, in which case no write matches."""


class Invocation(NamedTuple):
    """A webhook that will be called, and the kind to which the object is converted for the webhook."""

    hook: Hook
    kind: Kind


def is_exempt(attributes: Attributes) -> bool:
    """Return whether no webhook is called for this write.

    No webhook is called for webhook configurations, so that a broken configuration can always be repaired.
    """
    gvk = attributes.kind.gvk
    return gvk.group == "admissionregistration.k8s.io" and gvk.kind in _EXEMPT


def invocation_of(hook: Hook, attributes: Attributes, kinds: Kinds) -> Invocation | None:
    """Return the invocation of a webhook for a write; None if the webhook does not match.

    The function raises the errors of `selected_kind`.
    """
    kind = selected_kind(hook, attributes, kinds)
    return Invocation(hook, kind) if kind is not None else None


def selected_kind(what: Selection, attributes: Attributes, kinds: Kinds) -> Kind | None:
    """Return the kind to which the object is converted for a webhook or policy; None if the write does not match.

    Raises `NotFound` or `InternalError` if the rules match the write, but the namespace selector cannot be evaluated.
    """
    problem: NamespaceProblem | None = None
    try:
        if not _selects_namespace(what, attributes):
            return None
    except NamespaceProblem as found:
        problem = found
    if not _selects_object(what, attributes):
        return None
    if what.excluded and _matching_kind(what.excluded, what, attributes, kinds) is not None:
        return None
    kind = _matching_kind(what.rules, what, attributes, kinds)
    if kind is not None and problem is not None:
        raise problem.error
    return kind


class NamespaceProblem(Exception):
    """Raised if a namespace selector cannot be evaluated."""

    def __init__(self, error: InternalError | Exception) -> None:
        """Create the error; `error` is the error for the client."""
        super().__init__()
        self.error = error


def _selects_namespace(hook: Selection, attributes: Attributes) -> bool:
    if not attributes.namespace and attributes.resource != NAMESPACES:
        return True
    if hook.namespaces is None:
        raise NamespaceProblem(InternalError("Internal error occurred: the namespace selector is not valid"))
    return hook.namespaces.is_empty or hook.namespaces.matches(_namespace_labels(attributes))


def _namespace_labels(attributes: Attributes) -> Mapping[str, str]:
    """Return the labels of the object's namespace; if the object is a Namespace, its own labels."""
    if (
        attributes.resource == NAMESPACES
        and not attributes.subresource
        and attributes.operation in (Verb.CREATE, Verb.UPDATE)
    ):
        labels: Mapping[str, str] = attributes.metadata.get("labels") or {}
        return labels
    namespace = attributes.home
    if namespace is None:
        raise NamespaceProblem(not_found(NAMESPACES, attributes.namespace))
    return namespace.labels


def _selects_object(hook: Selection, attributes: Attributes) -> bool:
    if hook.objects is None:
        return False
    if hook.objects.is_empty:
        return True
    if attributes.operation is Verb.CONNECT:
        return False  # connect options have no labels, so object selectors do not match them
    states = (each for each in (attributes.object, attributes.old) if each is not None)
    return any(hook.objects.matches((each.get("metadata") or {}).get("labels") or {}) for each in states)


def _matching_kind(rules: Sequence[Rule], what: Selection, attributes: Attributes, kinds: Kinds) -> Kind | None:
    if any(_matches(rule, attributes, attributes.kind) for rule in rules):
        return attributes.kind
    if not what.matches_equivalent:
        return None
    others = list(_equivalents(attributes.kind, kinds))
    return next((kind for rule in rules for kind in others if _matches(rule, attributes, kind)), None)


def _equivalents(kind: Kind, kinds: Kinds) -> Iterator[Kind]:
    """Yield the other versions in which the API serves the same object."""
    for other in kinds:
        if other is not kind and (other.storage == kind.storage or other.resource == kind.resource):
            yield other


def _matches(rule: Rule, attributes: Attributes, kind: Kind) -> bool:
    return (
        ("*" in rule.operations or attributes.operation in rule.operations)
        and ("*" in rule.groups or kind.resource.group in rule.groups)
        and ("*" in rule.versions or kind.gvk.version in rule.versions)
        and _is_in_scope(rule.scope, attributes)
        and (not rule.names or attributes.name in rule.names)
        and any(
            resource in ("*", kind.resource.plural) and subresource in ("*", attributes.subresource)
            for resource, subresource in rule.resources
        )
    )


def _is_in_scope(scope: str, attributes: Attributes) -> bool:
    is_namespaced = attributes.resource != NAMESPACES and bool(attributes.namespace)
    return scope == "*" or (scope == "Namespaced") == is_namespaced
