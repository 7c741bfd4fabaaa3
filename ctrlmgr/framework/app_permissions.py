"""Computes the permissions of an app: permissions that its controllers declare, and that its tests used.

Guarantees: permissions are as narrow as RBAC allows, and their order is always the same. Permissions to delete objects,
and to write kinds that no controller names in `owns=`, are included only if a test of the app made such requests.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from ctrlmgr.framework.app import App, AppController
from ctrlmgr.framework.webhooks.webhook_address import SERVICE_PORT
from ctrlmgr.framework.webhooks.webhook_configurations import GROUP, MUTATING, VALIDATING, name_of

_VERBS: Final = ("get", "list", "watch", "create", "update", "patch", "delete")
_READ: Final = ("get", "list", "watch")
_EVENTS: Final = (("", "events"), ("events.k8s.io", "events"))
_DEFINITIONS: Final = ("apiextensions.k8s.io", "customresourcedefinitions")
_LEASES: Final = ("coordination.k8s.io", "leases")
_WEBHOOKS: Final = (GROUP, (MUTATING.plural, VALIDATING.plural))


class Right(NamedTuple):
    """The permission for one verb on one resource; `resource` may include a subresource, as in `pods/status`."""

    group: str
    resource: str
    verb: str


def declared_rights(app: App, *, definitions: bool = True) -> Iterator[Right]:
    """Yield the permissions that an app's declarations need.

    If `definitions` is set, the result includes the permissions to write the CustomResourceDefinitions of the app's
    kinds.
    """
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
    if controller.owns:  # Needed for owner references that block deletion (`OwnerReferencesPermissionEnforcement`).
        yield Right(group, f"{plural}/finalizers", "update")
    if main.cls is not None and _has_status(main.cls):
        yield Right(group, f"{plural}/status", "patch")
    for owned in controller.owns:
        yield from (Right(owned.group, owned.resource.plural, verb) for verb in ("create", "patch"))


def _has_status(cls: type[Any]) -> bool:
    return "status" in getattr(cls, "__struct_fields__", ())


def rules_of(rights: Iterable[Right]) -> list[dict[str, Any]]:
    """Return permissions as rules of a Role.

    Each rule has one API group, its verbs, and all resources with these verbs.
    """
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


def webhook_rules(app: App, within: str = "") -> list[dict[str, Any]]:
    """Return the RBAC rules for registering an app's admission functions as webhooks.

    The result is empty if the app has no such functions. `within` is the only namespace that the app follows; an empty
    namespace means all namespaces.
    """
    if not app.admissions:
        return []
    group = {"apiGroups": [_WEBHOOKS[0]], "resources": [*_WEBHOOKS[1]]}
    own = {**group, "resourceNames": [name_of(app.name, within)], "verbs": ["get", "patch", "delete"]}
    return [{**group, "verbs": ["create"]}, own]


def manifests(
    name: str,
    namespace: str,
    rights: Iterable[Right],
    *,
    within: str = "",
    webhooks: Sequence[dict[str, Any]] = (),
) -> list[dict[str, Any]]:
    """Return a ServiceAccount in `namespace`, and roles with these permissions and with those for the app's Lease.

    The permissions apply only in the namespace `within`; an empty namespace means all namespaces. `webhooks` are the
    RBAC rules that `webhook_rules` returns.
    """
    subject = {"kind": "ServiceAccount", "name": name, "namespace": namespace}
    lease = rules_of(Right(*_LEASES, verb) for verb in (*_READ, "create", "update"))
    if webhooks:
        lease += rules_of(Right("", "secrets", verb) for verb in ("get", "create"))
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
        *_cluster_role(f"{name}-webhooks", webhooks, subject),
    ]


def _cluster_role(name: str, rules: Sequence[dict[str, Any]], subject: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return a ClusterRole with its ClusterRoleBinding; the result is empty if there are no rules."""
    metadata = {"name": name}
    return (
        [
            _role("ClusterRole", metadata, [*rules]),
            _binding("ClusterRole", metadata, name, subject),
        ]
        if rules
        else []
    )


_API: Final = "rbac.authorization.k8s.io"


def _role(kind: str, metadata: Mapping[str, str], rules: list[dict[str, Any]]) -> dict[str, Any]:
    return {"apiVersion": f"{_API}/v1", "kind": kind, "metadata": dict(metadata), "rules": rules}


def _binding(kind: str, metadata: Mapping[str, str], role: str, subject: Mapping[str, str]) -> dict[str, Any]:
    reference = {"apiGroup": _API, "kind": kind, "name": role}
    body = {"apiVersion": f"{_API}/v1", "kind": f"{kind}Binding", "metadata": dict(metadata)}
    return {**body, "roleRef": reference, "subjects": [dict(subject)]}


def service(name: str, namespace: str) -> dict[str, Any]:
    """Return the Service through which the API server calls the webhooks of `deployment`."""
    labels = {"app.kubernetes.io/name": name}
    spec = {"selector": labels, "ports": [{"name": "webhooks", "port": 443, "targetPort": "webhooks"}]}
    metadata = {"name": name, "namespace": namespace, "labels": labels}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}


def deployed(name: str, namespace: str, image: str, place: str, app: App) -> list[dict[str, Any]]:
    """Return the Deployment of an app and, if the app has admission functions, the Service of its webhooks.

    `place` is the argument with which `ctrlmgr run` finds the app.
    """
    found = [deployment(name, namespace, image, place, webhooks=bool(app.admissions))]
    return [*found, service(name, namespace)] if app.admissions else found


def deployment(name: str, namespace: str, image: str, app: str, *, webhooks: bool = False) -> dict[str, Any]:
    """Return a Deployment of an image that starts `ctrlmgr run` with the argument `app`.

    If `webhooks` is set, the container serves the app's admission functions through the Service of the same name.
    """
    labels = {"app.kubernetes.io/name": name}
    arguments = [app, f"--leader-elect-resource-namespace={namespace}", "--status-address=0.0.0.0:8080"]
    container: dict[str, Any] = {
        "name": "operator",
        "image": image,
        "args": arguments,
        "ports": [{"name": "status", "containerPort": 8080}],
        "livenessProbe": {"httpGet": {"path": "/healthz", "port": "status"}},
        "readinessProbe": {"httpGet": {"path": "/readyz", "port": "status"}, "periodSeconds": 2},
        "resources": {"requests": {"cpu": "50m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
    }
    pod: dict[str, Any] = {
        "serviceAccountName": name,
        "securityContext": {"runAsNonRoot": True, "runAsUser": 65532, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [container],
    }
    if webhooks:
        arguments.append(f"--webhook-service={namespace}/{name}")
        container["ports"].append({"name": "webhooks", "containerPort": SERVICE_PORT})
        # Python loads a TLS certificate only from files, and the root file system of the container is read-only.
        container["volumeMounts"] = [{"name": "tmp", "mountPath": "/tmp"}]
        pod["volumes"] = [{"name": "tmp", "emptyDir": {"medium": "Memory"}}]
    spec = {
        "replicas": 1,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": pod},
    }
    metadata = {"name": name, "namespace": namespace, "labels": labels}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}
