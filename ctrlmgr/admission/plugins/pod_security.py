"""PodSecurity: refuses pods that violate the policy that the labels of their namespace define.

Guarantees: only pods are refused. For other objects with a pod template, violations cause warnings and audit
annotations. If the labels of a namespace become stricter, the response warns about existing pods that violate the new
policy.

Rules come from `k8s.io/pod-security-admission/admission` and Kubernetes' `plugin/pkg/admission/security/podsecurity`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final, NamedTuple

from ctrlmgr.admission.admission_plugin import Plugin
from ctrlmgr.admission.podsecurity.findings import Finding, Pod
from ctrlmgr.admission.podsecurity.levels import PREFIX, PRIVILEGED, LevelVersion, Policy, read_policy, strictness
from ctrlmgr.admission.podsecurity.pod_security_configuration import PodSecurityConfiguration
from ctrlmgr.admission.podsecurity.standards import details, evaluate
from ctrlmgr.api.field import refuse
from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import NAMESPACES, PODS, Resource
from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.caches import BoundedCache
from ctrlmgr.engine.admission_attributes import Attributes, Verb
from ctrlmgr.errors import InternalError
from ctrlmgr.kinds.core.pod.annotations import SECCOMP_CONTAINER, SECCOMP_POD

_ENFORCED = "pod-security.kubernetes.io/enforce-policy"
"""The audit annotation that contains the enforced policy."""
_IGNORED = frozenset(("exec", "attach", "binding", "eviction", "log", "portforward", "proxy", "status"))
"""Subresources of pods that do not change the pod's spec; writes to all other subresources are checked."""
_CHECKED = 3000
"""The maximum number of a namespace's pods that are checked when its labels change."""
_TEMPLATES: Mapping[Resource, tuple[str, ...]] = {
    Resource("", "podtemplates"): ("template",),
    Resource("", "replicationcontrollers"): ("spec", "template"),
    Resource("apps", "replicasets"): ("spec", "template"),
    Resource("apps", "deployments"): ("spec", "template"),
    Resource("apps", "statefulsets"): ("spec", "template"),
    Resource("apps", "daemonsets"): ("spec", "template"),
    Resource("batch", "jobs"): ("spec", "template"),
    Resource("batch", "cronjobs"): ("spec", "jobTemplate", "spec", "template"),
}
"""The path of the pod template in an object, by kind."""

_ENTRIES: Final = 4096
_SIZE: Final = 16 * 1024 * 1024
"""The maximum total size of the namespaces whose policies are cached, in bytes."""


class _CachedPolicy(NamedTuple):
    """The policy of a namespace, and the errors in the namespace's labels; both are cached with the Namespace."""

    of: Object
    policy: Policy
    error: str
    is_open: bool
    """Whether the policy accepts every pod without warnings."""


class PodSecurity(Plugin):
    """Enforces the Pod Security Standards."""

    name: ClassVar[str] = "PodSecurity"

    def __init__(self, configuration: PodSecurityConfiguration | None = None) -> None:
        """Enforce the policies of namespaces, with the defaults and exemptions of `configuration`."""
        self._configuration = configuration or PodSecurityConfiguration()
        self._known: BoundedCache[str, _CachedPolicy] = BoundedCache("pod-security", entries=_ENTRIES, size=_SIZE)

    def handles(self, resource: Resource, subresource: str, operation: Verb) -> bool:
        """Return whether the plugin handles the write: writes of namespaces, pods, and objects with pod templates."""
        if operation not in (Verb.CREATE, Verb.UPDATE):
            return False
        if resource == PODS:
            return subresource not in _IGNORED
        return not subresource and (resource == NAMESPACES or resource in _TEMPLATES)

    def validate(self, attributes: Attributes) -> None:
        """Raise `Forbidden` for a pod that violates the policy, or add warnings."""
        if attributes.resource == PODS:
            self._validate_pod(attributes)
        elif attributes.resource == NAMESPACES:
            self._validate_namespace(attributes)
        else:
            self._validate_template(attributes)

    def _validate_namespace(self, attributes: Attributes) -> None:
        labels = _labels(attributes.fields)
        policy, errors = read_policy(labels, self._configuration.defaults)
        old = None if attributes.old is None else read_policy(_labels(attributes.old), self._configuration.defaults)
        if errors and (old is None or errors != old.errors):
            raise refuse("Namespace", "", attributes.called(), errors)
        if old is not None and not _is_stricter(policy.enforce, old.policy.enforce):
            return
        if attributes.namespace in self._configuration.namespaces:
            attributes.warnings += self._exempt_warning(attributes.called(), policy, labels)
        elif old is not None:
            pods = attributes.view.list(PODS, attributes.called())
            attributes.warnings += self._namespace_warnings(attributes.called(), policy.enforce, pods)

    def _exempt_warning(self, name: str, policy: Policy, labels: Mapping[str, str]) -> list[str]:
        if policy.is_privileged or policy.is_equivalent(self._configuration.defaults):
            return []
        reasons = [
            f"{mode}={level}"
            for mode, level in policy._asdict().items()
            if level.level != PRIVILEGED and (PREFIX + mode in labels or f"{PREFIX}{mode}-version" in labels)
        ]
        return [
            f'namespace "{name}" is exempt from Pod Security, and the policy ({", ".join(reasons)}) will be ignored'
        ]

    def _namespace_warnings(self, name: str, enforce: LevelVersion, pods: Sequence[Object]) -> list[str]:
        """Return warnings that list the existing pods that violate the new policy."""
        found: dict[str, list[str]] = {}
        looked_at = list(self._by_priority(pods))
        for pod, fields in looked_at[:_CHECKED]:
            findings = evaluate(enforce, _pod(fields))
            if findings:
                found.setdefault(", ".join(each.reason for each in findings), []).append(pod.name)
        warnings = []
        if len(looked_at) > _CHECKED:
            checked = f"the first {_CHECKED} of {len(looked_at)} existing pods"
            warnings.append(f"new PodSecurity enforce level only checked against {checked}")
        if found:
            warnings.append(
                f'existing pods in namespace "{name}" violate the new PodSecurity enforce level "{enforce}"'
            )
        return warnings + sorted(f"{_named(names)}: {reasons}" for reasons, names in found.items())

    def _by_priority(self, pods: Sequence[Object]) -> Iterator[tuple[Object, Unstructured]]:
        """Yield pods, beginning with one pod of each controller; pods with exempt runtime classes are omitted."""
        later: list[tuple[Object, Unstructured]] = []
        seen: set[str] = set()
        for pod in pods:
            fields = pod.to_dict()
            if (fields.get("spec") or {}).get("runtimeClassName") in self._configuration.runtime_classes:
                continue
            owners = fields["metadata"].get("ownerReferences") or ()
            controller = next((each["uid"] for each in owners if each.get("controller")), None)
            if controller in seen:
                later.append((pod, fields))
                continue
            if controller is not None:
                seen.add(controller)
            yield pod, fields
        yield from later

    def _validate_pod(self, attributes: Attributes) -> None:
        known = self._asked_for(attributes)
        if known is None:
            return
        if known.is_open:
            attributes.annotations[_ENFORCED] = "privileged:latest"
            return
        old = attributes.old
        if attributes.operation is Verb.UPDATE and old is not None and not _is_significant(attributes.fields, old):
            return
        self._evaluate(attributes, known.policy, known.error, _pod(attributes.fields), enforces=True)

    def _validate_template(self, attributes: Attributes) -> None:
        known = self._asked_for(attributes)
        if known is None:
            return
        policy, error = known.policy, known.error
        if policy.warn.level == policy.audit.level == PRIVILEGED and not error:
            return
        template: Any = attributes.fields
        for field in _TEMPLATES[attributes.resource]:
            template = (template or {}).get(field)
        if template is not None:
            self._evaluate(attributes, policy, error, _pod(template), enforces=False)

    def _asked_for(self, attributes: Attributes) -> _CachedPolicy | None:
        """Return the policy of the object's namespace; None if the write is exempt from checks."""
        if attributes.namespace in self._configuration.namespaces:
            attributes.annotations["pod-security.kubernetes.io/exempt"] = "namespace"
            return None
        if attributes.requester.user in self._configuration.usernames:
            attributes.annotations["pod-security.kubernetes.io/exempt"] = "user"
            return None
        namespace = attributes.home
        if namespace is None:
            if attributes.resource != PODS:
                return None
            raise InternalError(f'Internal error occurred: failed to lookup namespace "{attributes.namespace}"')
        known = self._known.get(namespace.name)
        if known is None or known.of is not namespace:
            policy, errors = read_policy(namespace.labels, self._configuration.defaults)
            error = ", ".join(each.message for each in errors)
            known = _CachedPolicy(namespace, policy, error, policy.is_privileged and not error)
            self._known.put(namespace.name, known, len(namespace.body))
        return known

    def _evaluate(self, attributes: Attributes, policy: Policy, error: str, pod: Pod, *, enforces: bool) -> None:
        if pod.spec.get("runtimeClassName") in self._configuration.runtime_classes:
            attributes.annotations["pod-security.kubernetes.io/exempt"] = "runtimeClass"
            return
        if error:
            attributes.annotations["pod-security.kubernetes.io/error"] = f"Failed to parse policy: {error}"
        refused = evaluate(policy.enforce, pod) if enforces else []
        if enforces:
            attributes.annotations[_ENFORCED] = str(policy.enforce)
        if audited := evaluate(policy.audit, pod):
            violation = f"would {_violates(policy.audit, audited)}"
            attributes.annotations["pod-security.kubernetes.io/audit-violations"] = violation
        if refused:
            raise attributes.forbidden(_violates(policy.enforce, refused, "violates"))
        if warned := evaluate(policy.warn, pod):
            attributes.warnings.append(f"would {_violates(policy.warn, warned)}")


def _violates(level: LevelVersion, findings: list[Finding], verb: str = "violate") -> str:
    return f'{verb} PodSecurity "{level}": {details(findings)}'


def _labels(fields: Mapping[str, Any]) -> Mapping[str, str]:
    labels: Mapping[str, str] = fields["metadata"].get("labels") or {}
    return labels


def _pod(fields: Mapping[str, Any]) -> Pod:
    return Pod((fields.get("metadata") or {}).get("annotations") or {}, fields.get("spec") or {})


def _is_stricter(new: LevelVersion, old: LevelVersion) -> bool:
    """Return whether the new policy of a namespace may refuse pods that the old policy accepted."""
    if new == old or new.level == PRIVILEGED:
        return False
    return new.version != old.version or strictness(new.level) > strictness(old.level)


def _is_significant(new: Unstructured, old: Unstructured) -> bool:
    """Return whether an update changes fields that are checked: containers, their images, or seccomp annotations."""
    if _seccomp(new) != _seccomp(old):
        return True
    spec, before = new.get("spec") or {}, old.get("spec") or {}
    for field in ("containers", "initContainers"):
        images = [[each.get("image") for each in part.get(field) or ()] for part in (spec, before)]
        if images[0] != images[1]:
            return True
    known = {each["name"]: each.get("image") for each in before.get("ephemeralContainers") or ()}
    added = spec.get("ephemeralContainers") or ()
    return any(each["name"] not in known or known[each["name"]] != each.get("image") for each in added)


def _seccomp(pod: Unstructured) -> dict[str, str]:
    annotations = (pod.get("metadata") or {}).get("annotations") or {}
    return {key: value for key, value in annotations.items() if key == SECCOMP_POD or key.startswith(SECCOMP_CONTAINER)}


def _named(names: list[str]) -> str:
    first, others = min(names), len(names) - 1
    if not others:
        return first
    return f"{first} (and {others} other {'pod' if others == 1 else 'pods'})"
