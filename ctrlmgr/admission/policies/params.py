"""Finds the parameter objects that a binding names for its policy.

Source: apiserver `pkg/admission/plugin/policy/generic/policy_matcher.go` (`CollectParams`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ctrlmgr.admission.policies.policy_parsing import Binding
from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key
from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.engine.admission_attributes import Attributes
from ctrlmgr.engine.calls.call import Calling
from ctrlmgr.engine.conversion import converting
from ctrlmgr.engine.kind import GroupVersionKind, Kind
from ctrlmgr.engine.kind_registry import Kinds
from ctrlmgr.kinds.label_selectors import selector_of


class NotConfigured(Exception):
    """Raised if a policy or a binding is misconfigured; the error message says why."""


def param_kind(required: Mapping[str, str] | None, kinds: Kinds) -> Kind | None:
    """Return the kind of a policy's parameters, None if the policy has no parameters.

    Raises `NotConfigured` if the kind does not exist.
    """
    if required is None:
        return None
    group, _, version = required["apiVersion"].rpartition("/")
    kind = kinds.by_gvk(GroupVersionKind(group, version, required["kind"]))
    if kind is None or not kind.is_served:
        named = f"{required['apiVersion']}, Kind={required['kind']}"
        raise NotConfigured(f"failed to find resource referenced by paramKind: '{named}'")
    return kind


def params_of(binding: Binding, kind: Kind | None, attributes: Attributes) -> Calling[Sequence[Unstructured | None]]:
    """Return the parameter objects with which a policy is evaluated.

    None in the list means an evaluation without parameters. Raises `NotConfigured` if the binding is misconfigured.
    """
    reference = binding.param_ref
    if kind is None or reference is None:
        return [None]
    found = _found(reference, kind, _namespace(reference, kind, attributes), attributes)
    if not found and reference.get("parameterNotFoundAction") == "Deny":
        raise NotConfigured("no params found for policy binding with `Deny` parameterNotFoundAction")
    return (yield from converting(lambda: [_served(each, kind) for each in found], attributes.call_inputs))


def _namespace(reference: Mapping[str, Any], kind: Kind, attributes: Attributes) -> str:
    named: str = reference.get("namespace") or ""
    if not kind.namespaced:
        if named:
            raise NotConfigured("paramRef.namespace must not be provided for a cluster-scoped `paramKind`")
        return ""
    if not named and not attributes.namespace:
        raise NotConfigured("cannot use namespaced paramRef in policy binding that matches cluster-scoped resources")
    return named or attributes.namespace


def _found(reference: Mapping[str, Any], kind: Kind, namespace: str, attributes: Attributes) -> Sequence[Object]:
    if name := reference.get("name"):
        found = attributes.view.get(kind.storage, Key(namespace, name))
        return [found] if found is not None else []
    selector = selector_of(reference.get("selector") or {})
    if selector is None:
        raise NotConfigured("the selector of paramRef is not valid")
    objects = attributes.view.list(kind.storage, namespace if kind.namespaced else None)
    return [each for each in objects if selector.matches(each.labels)]


def _served(obj: Object, kind: Kind) -> Unstructured:
    return (kind.from_storage(obj) if kind.from_storage is not None else obj).to_dict()
