"""The settings of authorization, with the same names as the flags of kube-apiserver."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Final

from ctrlmgr.settings.setting_declaration import Setting
from ctrlmgr.settings.setting_types import DURATION, LIST, NAMES, SWITCH, TEXT, Kind, one_of

CONFIGURED_TYPES: Final = ("Node", "RBAC", "Webhook", "AlwaysAllow", "AlwaysDeny")
"""The types of authorizers that an authorization configuration file can contain."""

ABAC: Final = "ABAC"
"""The type of the authorizer that decides by the policies in the file of the setting `policy_file`."""

MODES: Final = (*CONFIGURED_TYPES, ABAC)
"""The types of authorizers that the setting `mode` can contain."""

_read_list: Callable[[Any], tuple[str, ...]] = LIST.read


def _read_modes(value: Any) -> tuple[str, ...]:
    modes = _read_list(value)
    if not modes or not set(modes) <= set(MODES) or len(set(modes)) != len(modes):
        raise ValueError(value)
    return modes


_MODES = Kind(f'each of them once at most, of {", ".join(MODES)}: a list such as ["Node", "RBAC"]', _read_modes)


@dataclass(frozen=True, kw_only=True)
class AuthorizationSettings:
    """The settings of authorization: which authorizers decide whether a request is allowed."""

    mode: Annotated[
        tuple[str, ...],
        _MODES,
        Setting(
            "The authorizers of requests, in the order in which they are called; the first authorizer that allows "
            'or denies a request decides. "RBAC": roles and bindings; "Node": the rights of kubelets; "Webhook": '
            'another server; "ABAC": the policies in `policy_file`; "AlwaysAllow" and "AlwaysDeny": all or no '
            "requests. Members of system:masters may do everything.",
            flag="--authorization-mode",
            metavar="LIST",
        ),
    ] = ("Node", "RBAC")
    always_allow_paths: Annotated[
        tuple[str, ...],
        NAMES,
        Setting(
            "Paths of the pages of a process that runs only controllers (`serve --kubeconfig`) that any client may "
            "read. A path that ends with * stands for all paths with this prefix.",
            flag="--authorization-always-allow-paths",
            metavar="PATH",
        ),
    ] = ("/healthz", "/readyz", "/livez")
    end_watches: Annotated[
        bool,
        SWITCH,
        Setting(
            "Whether a watch ends within a minute after its user lost the right to start it. false: as in "
            "Kubernetes, the server checks the right only at the start, and the watch lasts until its timeout."
        ),
    ] = True
    config: Annotated[
        str,
        TEXT,
        Setting(
            "A file that lists the authorizers (YAML or JSON, AuthorizationConfiguration of "
            "apiserver.config.k8s.io/v1). This file replaces `mode` and the settings of the webhook, and allows "
            "several webhooks. The server reloads the file when it changes.",
            flag="--authorization-config",
            metavar="FILE",
        ),
    ] = ""
    policy_file: Annotated[
        str,
        TEXT,
        Setting(
            'A file with the policies of the mode "ABAC": one JSON object a line, each a Policy of '
            "abac.authorization.kubernetes.io/v1beta1.",
            flag="--authorization-policy-file",
            metavar="FILE",
        ),
    ] = ""
    webhook_config_file: Annotated[
        str,
        TEXT,
        Setting(
            "A kubeconfig whose current context names the authorization webhook: the server that mode "
            '"Webhook" calls (SubjectAccessReview).',
            flag="--authorization-webhook-config-file",
            metavar="FILE",
        ),
    ] = ""
    webhook_version: Annotated[
        str,
        one_of("v1", "v1beta1"),
        Setting(
            "The version of authorization.k8s.io in requests to the authorization webhook.",
            flag="--authorization-webhook-version",
            metavar="VERSION",
        ),
    ] = "v1beta1"
    webhook_cache_authorized_ttl: Annotated[
        float,
        DURATION,
        Setting(
            "How long an approval by the authorization webhook is cached.",
            flag="--authorization-webhook-cache-authorized-ttl",
            metavar="DURATION",
        ),
    ] = 300.0
    webhook_cache_unauthorized_ttl: Annotated[
        float,
        DURATION,
        Setting(
            "How long a denial by the authorization webhook is cached.",
            flag="--authorization-webhook-cache-unauthorized-ttl",
            metavar="DURATION",
        ),
    ] = 30.0
