"""The permissions that an app needs: declared by its controllers, and observed in its tests.

Guarantees: permissions are as narrow as RBAC allows, and in the same order each time. Deletions, and writes of kinds
that no controller names in `owns=`, are known from observation only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from ctrlmgr.framework.app import App, AppController

_VERBS: Final = ("get", "list", "watch", "create", "update", "patch", "delete")
_READ: Final = ("get", "list", "watch")
_EVENTS: Final = (("", "events"), ("events.k8s.io", "events"))
_DEFINITIONS: Final = ("apiextensions.k8s.io", "customresourcedefinitions")
_LEASES: Final = ("coordination.k8s.io", "leases")


class Right(NamedTuple):
    """One verb on one resource; `resource` may have a subresource, `pods/status`."""

    group: str
    resource: str
    verb: str


def declared_rights(app: App, *, definitions: bool = True) -> Iterator[Right]:
    """Yield the permissions that an app's declarations need; with `definitions` also to define its kinds."""
    for group, resource in _EVENTS:
        yield from (Right(group, resource, verb) for verb in ("create", "patch"))
    if definitions and app.kinds:
        yield from (Right(*_DEFINITIONS, verb) for verb in ("get", "create", "patch"))
    for controller in app.controllers:
        yield from _of_controller(controller)


def _of_controller(controller: AppController[Any]) -> Iterator[Right]:
    for kind in controller.kinds:
        yield from (Right(kind.group, kind.resource.plural, verb) for verb in _READ)
    main = controller.declaration
    group, plural = main.group, main.resource.plural
    if controller.finalizer:
        yield Right(group, plural, "update")
    if controller.owns:  # for owner references that block deletion (`OwnerReferencesPermissionEnforcement`)
        yield Right(group, f"{plural}/finalizers", "update")
    if main.cls is not None and _has_status(main.cls):
        yield Right(group, f"{plural}/status", "patch")
    for owned in controller.owns:
        yield from (Right(owned.group, owned.resource.plural, verb) for verb in ("create", "patch"))


def _has_status(cls: type[Any]) -> bool:
    return "status" in getattr(cls, "__struct_fields__", ())


def rules_of(rights: Iterable[Right]) -> list[dict[str, Any]]:
    """Return permissions as rules of a Role: one for each group and set of verbs, with all their resources."""
    verbs: dict[tuple[str, str], set[str]] = {}
    for each in rights:
        verbs.setdefault((each.group, each.resource), set()).add(each.verb)
    merged: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for (group, resource), found in sorted(verbs.items()):
        merged.setdefault((group, tuple(sorted(found, key=_VERBS.index))), []).append(resource)
    return [
        {"apiGroups": [group], "resources": resources, "verbs": [*allowed]}
        for (group, allowed), resources in merged.items()
    ]


def manifests(name: str, namespace: str, rights: Iterable[Right], *, within: str = "") -> list[dict[str, Any]]:
    """Return a ServiceAccount with these permissions, and with those for its Lease in `namespace`.

    The permissions hold in the namespace `within` only; empty: everywhere.
    """
    subject = {"kind": "ServiceAccount", "name": name, "namespace": namespace}
    lease = rules_of(Right(*_LEASES, verb) for verb in (*_READ, "create", "update"))
    scope = {"namespace": within} if within else {}
    role = "Role" if within else "ClusterRole"
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": namespace}},
        _role(role, {"name": name, **scope}, rules_of(rights)),
        _binding(role, {"name": name, **scope}, name, subject),
        _role("Role", {"name": f"{name}-leader-election", "namespace": namespace}, lease),
        _binding(
            "Role", {"name": f"{name}-leader-election", "namespace": namespace}, f"{name}-leader-election", subject
        ),
    ]


_API: Final = "rbac.authorization.k8s.io"


def _role(kind: str, metadata: Mapping[str, str], rules: list[dict[str, Any]]) -> dict[str, Any]:
    return {"apiVersion": f"{_API}/v1", "kind": kind, "metadata": dict(metadata), "rules": rules}


def _binding(kind: str, metadata: Mapping[str, str], role: str, subject: Mapping[str, str]) -> dict[str, Any]:
    reference = {"apiGroup": _API, "kind": kind, "name": role}
    body = {"apiVersion": f"{_API}/v1", "kind": f"{kind}Binding", "metadata": dict(metadata)}
    return {**body, "roleRef": reference, "subjects": [dict(subject)]}


def deployment(name: str, namespace: str, image: str, app: str) -> dict[str, Any]:
    """Return a Deployment of an image that starts `ctrlmgr run` with the argument `app`."""
    labels = {"app.kubernetes.io/name": name}
    arguments = [app, f"--leader-elect-resource-namespace={namespace}", "--status-address=0.0.0.0:8080"]
    container = {
        "name": "operator",
        "image": image,
        "args": arguments,
        "ports": [{"name": "status", "containerPort": 8080}],
        "livenessProbe": {"httpGet": {"path": "/healthz", "port": "status"}},
        "readinessProbe": {"httpGet": {"path": "/readyz", "port": "status"}},
        "resources": {"requests": {"cpu": "50m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
    }
    pod = {
        "serviceAccountName": name,
        "securityContext": {"runAsNonRoot": True, "runAsUser": 65532, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [container],
    }
    spec = {
        "replicas": 1,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": pod},
    }
    metadata = {"name": name, "namespace": namespace, "labels": labels}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}
