"""The webhook configurations of an app tell an API server for which writes to call the app's admission functions.

Guarantees: an app has one webhook configuration for functions that change objects, and one for functions that validate.
The name of both configurations depends on the app and the followed namespace, so a run of an app finds the
configurations of an earlier run. If an admission function does not respond, the write fails (`failurePolicy: Fail`), as
inside the API server.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key, Resource
from ctrlmgr.framework.app import App
from ctrlmgr.framework.app_admission import AppAdmission
from ctrlmgr.framework.children import to_object

GROUP: Final = "admissionregistration.k8s.io"
MUTATING: Final = Resource(GROUP, "mutatingwebhookconfigurations")
VALIDATING: Final = Resource(GROUP, "validatingwebhookconfigurations")
RUN: Final = "ctrlmgr.io/run"
"""The annotation that names the process that registered a configuration."""

_KINDS: Final = {
    MUTATING: ("MutatingWebhookConfiguration", False),
    VALIDATING: ("ValidatingWebhookConfiguration", True),
}
"""For each resource of webhook configurations: its kind, and whether its webhooks only validate."""

_DOMAIN: Final = "apps.ctrlmgr.io"
_TIMEOUT: Final = 10
"""Seconds for which the API server waits for a response of the webhook; this is Kubernetes' default."""


class Registered(NamedTuple):
    """One of the two webhook configurations of an app."""

    resource: Resource
    key: Key
    wanted: Object | None
    """The webhook configuration; None if it must not exist, because the app has no functions of this type.
    """


def name_of(app: str, namespace: str = "") -> str:
    """Return the name of an app's webhook configurations.

    `namespace` is the only namespace that the app follows; an empty namespace means all namespaces.
    """
    return f"{namespace}.{app}.{_DOMAIN}" if namespace else f"{app}.{_DOMAIN}"


def path_of(app: str, function: str) -> str:
    """Return the URL path at which an admission function is served."""
    return f"/{app}/{function}"


def left_over(app: App, namespace: str) -> Iterator[Registered]:
    """Yield the webhook configurations that an earlier run of an app may have left, marked as to be removed."""
    for resource in _KINDS:
        yield Registered(resource, Key("", name_of(app.name, namespace)), None)


def configurations(
    app: App, namespace: str, client_config: Callable[[str], dict[str, Any]], run: str
) -> Iterator[Registered]:
    """Yield the webhook configurations of an app.

    `client_config` returns the `clientConfig` for a path, and `run` identifies the process.
    """
    for resource, key, _ in left_over(app, namespace):
        kind, validates = _KINDS[resource]
        hooks = [
            _webhook(app, each, namespace, client_config) for each in app.admissions if each.validates == validates
        ]
        metadata = {"name": key.name, "annotations": {RUN: run}}
        fields = {"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": metadata, "webhooks": hooks}
        yield Registered(resource, key, to_object(fields, resource) if hooks else None)


def _webhook(
    app: App, declared: AppAdmission, namespace: str, client_config: Callable[[str], dict[str, Any]]
) -> dict[str, Any]:
    kind = declared.declaration
    resource = f"{kind.resource.plural}/{declared.subresource}" if declared.subresource else kind.resource.plural
    hook: dict[str, Any] = {
        "name": f"{declared.name}.{name_of(app.name)}",
        "clientConfig": client_config(path_of(app.name, declared.name)),
        "rules": [
            {
                "apiGroups": [kind.group],
                "apiVersions": [kind.version],
                "resources": [resource],
                "operations": [str(each) for each in declared.operations],
                "scope": "*",
            }
        ],
        "admissionReviewVersions": ["v1"],
        "failurePolicy": "Fail",
        "matchPolicy": "Equivalent",
        "sideEffects": "NoneOnDryRun",
        "timeoutSeconds": _TIMEOUT,
    }
    if not declared.validates:
        # After a webhook has changed an object, the API server runs its own admission plugins again.
        hook["reinvocationPolicy"] = "IfNeeded"
    if namespace:
        hook["namespaceSelector"] = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
    return hook
