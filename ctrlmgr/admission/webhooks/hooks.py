"""The webhooks there are, read from their configurations.

Guarantees: hooks come in the order Kubernetes asks them: by the name of their configuration, within it as they are
listed. A configuration is read once for each of its revisions; where there are none, nothing is read at all.

Rules come from apiserver's `pkg/admission/configuration/*_webhook_manager.go` and `pkg/admission/plugin/webhook`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from ctrlmgr.admission.expressions.conditions import Condition, condition_of
from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Resource
from ctrlmgr.engine.selectors.labels import LabelSelector
from ctrlmgr.engine.strategy import View
from ctrlmgr.kinds.admissionregistration.expressions import compiled_condition
from ctrlmgr.kinds.label_selectors import selector_of

MUTATING: Final = Resource("admissionregistration.k8s.io", "mutatingwebhookconfigurations")
VALIDATING: Final = Resource("admissionregistration.k8s.io", "validatingwebhookconfigurations")


class Rule(NamedTuple):
    """Which writes a hook is asked about (RuleWithOperations)."""

    operations: frozenset[str]
    groups: frozenset[str]
    versions: frozenset[str]
    resources: tuple[tuple[str, str], ...]
    """Pairs of resource and subresource."""
    scope: str
    names: frozenset[str] = frozenset()
    """Names of objects; empty for all. Only policies name them."""


@dataclass(frozen=True, slots=True)
class Hook:
    """One webhook."""

    configuration: str
    name: str
    index: int
    """Its place in the configuration."""
    client: Mapping[str, Any]
    """How it is reached (WebhookClientConfig)."""
    rules: tuple[Rule, ...]
    fails_open: bool
    """Whether a write goes on when the hook cannot be asked."""
    matches_equivalent: bool
    """Whether it is also asked about other versions of what its rules name."""
    namespaces: LabelSelector | None
    """None: the selector cannot be read, which no write passes."""
    objects: LabelSelector | None
    has_side_effects: bool
    """Whether it must not be asked about dry runs."""
    timeout: int
    """Seconds."""
    versions: tuple[str, ...]
    """The versions of AdmissionReview that it reads, the one it likes best first."""
    reinvoked: bool
    """Whether it is asked again after a later hook changed the object."""
    revision: int
    """That of its configuration."""
    conditions: tuple[Condition, ...] = ()
    """What must be true of a write besides; empty for nearly all hooks."""
    excluded: tuple[Rule, ...] = ()
    """Hooks exclude nothing; policies do."""

    @property
    def uid(self) -> str:
        """What tells hooks of the same name apart."""
        return f"{self.configuration}/{self.name}/{self.index}"


class Hooks:
    """The hooks of one kind of configuration."""

    def __init__(self, configurations: Resource) -> None:
        """Read the objects of `configurations`."""
        self._configurations = configurations
        self._read: dict[str, tuple[Object, tuple[Hook, ...]]] = {}

    def found(self, view: View) -> Sequence[Hook]:
        """Return all hooks there are now, in their order."""
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
    """Read a rule of operations and resources."""
    resources = [each.partition("/") for each in fields.get("resources") or ()]
    return Rule(
        frozenset(fields.get("operations") or ()),
        frozenset(fields.get("apiGroups") or ()),
        frozenset(fields.get("apiVersions") or ()),
        tuple((resource, subresource) for resource, _, subresource in resources),
        fields.get("scope") or "*",
        frozenset(fields.get("resourceNames") or ()),
    )
