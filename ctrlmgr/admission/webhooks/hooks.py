"""Reads webhooks from their configurations.

Guarantees: webhooks are in Kubernetes' calling order: sorted by the name of their configuration, and within a
configuration in the order of its list. Each revision of a webhook configuration is decoded only once.

Rules come from apiserver's `pkg/admission/configuration/*_webhook_manager.go` and `pkg/admission/plugin/webhook`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from ctrlmgr.admission.expressions.cel_evaluation import Condition, condition_of
from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Resource
from ctrlmgr.engine.selectors.label_selector_parser import LabelSelector
from ctrlmgr.engine.strategy import View
from ctrlmgr.kinds.admissionregistration.expression_variables import compiled_condition
from ctrlmgr.kinds.label_selectors import selector_of

MUTATING: Final = Resource("admissionregistration.k8s.io", "mutatingwebhookconfigurations")
VALIDATING: Final = Resource("admissionregistration.k8s.io", "validatingwebhookconfigurations")


class Rule(NamedTuple):
    """A rule that selects the writes for which a webhook is called (RuleWithOperations)."""

    operations: frozenset[str]
    groups: frozenset[str]
    versions: frozenset[str]
    resources: tuple[tuple[str, str], ...]
    """The pairs of resource and subresource that the rule selects."""
    scope: str
    names: frozenset[str] = frozenset()
    """The names of the objects that the rule selects; empty for all objects.

    Only the rules of admission policies contain names.
    """


@dataclass(frozen=True, slots=True)
class Hook:
    """One webhook."""

    configuration: str
    name: str
    index: int
    """The index of the webhook in its webhook configuration."""
    client: Mapping[str, Any]
    """The address of the webhook (WebhookClientConfig)."""
    rules: tuple[Rule, ...]
    fails_open: bool
    """Whether a write continues if the webhook cannot be called."""
    matches_equivalent: bool
    """Whether the webhook is also called for other versions of the resources in its rules."""
    namespaces: LabelSelector | None
    """The namespace selector; None if the selector is invalid, in which case no write matches."""
    objects: LabelSelector | None
    has_side_effects: bool
    """Whether the webhook has side effects, and must therefore not be called for dry runs."""
    timeout: int
    """The timeout of a call, in seconds."""
    versions: tuple[str, ...]
    """The versions of AdmissionReview that the webhook accepts, in its order of preference."""
    reinvoked: bool
    """Whether the webhook is called again after a later webhook changed the object."""
    revision: int
    """The revision of the webhook's configuration."""
    conditions: tuple[Condition, ...] = ()
    """The match conditions of the webhook; empty for most webhooks."""
    excluded: tuple[Rule, ...] = ()
    """The rules of excluded resources; only policies have such rules."""

    @property
    def uid(self) -> str:
        """An identifier that is unique even among webhooks of the same name."""
        return f"{self.configuration}/{self.name}/{self.index}"


class Hooks:
    """The webhooks of all webhook configurations of one kind."""

    def __init__(self, configurations: Resource) -> None:
        """Read the webhooks from objects of the resource `configurations`."""
        self._configurations = configurations
        self._read: dict[str, tuple[Object, tuple[Hook, ...]]] = {}

    def found(self, view: View) -> Sequence[Hook]:
        """Return all webhooks of the current configurations, in calling order."""
        configurations = view.list(self._configurations)
        if not configurations:
            return ()
        read = {each.name: (each, self._hooks(each)) for each in configurations}
        self._read = read
        return [hook for _, hooks in read.values() for hook in hooks]

    def _hooks(self, configuration: Object) -> tuple[Hook, ...]:
        known = self._read.get(configuration.name)
        if known is not None and known[0] is configuration:
            return known[1]
        listed = enumerate(configuration.to_dict().get("webhooks") or ())
        return tuple(_hook(configuration, index, fields) for index, fields in listed)


def _hook(configuration: Object, index: int, fields: Mapping[str, Any]) -> Hook:
    return Hook(
        configuration.name,
        fields["name"],
        index,
        fields.get("clientConfig") or {},
        tuple(rule_of(each) for each in fields.get("rules") or ()),
        fields.get("failurePolicy") == "Ignore",
        fields.get("matchPolicy") != "Exact",
        selector_of(fields.get("namespaceSelector") or {}),
        selector_of(fields.get("objectSelector") or {}),
        fields.get("sideEffects") not in ("None", "NoneOnDryRun"),
        fields.get("timeoutSeconds") or 10,
        tuple(fields.get("admissionReviewVersions") or ()),
        fields.get("reinvocationPolicy") == "IfNeeded",
        configuration.revision,
        tuple(condition_of(each, compiled_condition) for each in fields.get("matchConditions") or ()),
    )


def rule_of(fields: Mapping[str, Any]) -> Rule:
    """Parse a rule for operations and resources."""
    resources = [each.partition("/") for each in fields.get("resources") or ()]
    return Rule(
        frozenset(fields.get("operations") or ()),
        frozenset(fields.get("apiGroups") or ()),
        frozenset(fields.get("apiVersions") or ()),
        tuple((resource, subresource) for resource, _, subresource in resources),
        fields.get("scope") or "*",
        frozenset(fields.get("resourceNames") or ()),
    )
