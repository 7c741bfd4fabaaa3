"""The server's credentials for webhooks: the users of a kubeconfig, whose names are host names.

Guarantees: a call uses the credentials with the most specific name that matches the host, for example
`name.namespace.svc:8443` before `*.namespace.svc:8443` before `*.svc:8443`. For port 443, names without a port match,
too. If no name matches a host, requests to the host contain no credentials. Token files are read again for each call of
a webhook.

Rules come from apiserver's `pkg/admission/plugin/webhook/config` and `pkg/util/webhook/authentication.go`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from ctrlmgr.engine.calls.call import ANONYMOUS, Credentials
from ctrlmgr.settings.configuration_files import Document
from ctrlmgr.settings.kubeconfig import certificate_of, headers_of, users_of

_VERSIONS: Final = ("apiserver.config.k8s.io/v1", "apiserver.config.k8s.io/v1alpha1")


class _Configuration(msgspec.Struct, forbid_unknown_fields=True):
    kubeconfig: str = msgspec.field(name="kubeConfigFile", default="")


class HookCredentials:
    """The credentials that the server sends to webhooks, by the webhook's host."""

    def __init__(self, users: Mapping[str, Mapping[str, Any]]) -> None:
        """Use the users of a kubeconfig, given by user name; raises `SettingsError` if a certificate cannot be read."""
        self._users = {name: (dict(fields), certificate_of(dict(fields))) for name, fields in users.items()}

    def of(self, url: str) -> Credentials:
        """Return the credentials that are sent to the host of a URL."""
        if not self._users:
            return ANONYMOUS
        for name in _names(url):
            if name in self._users:
                fields, certificate = self._users[name]
                return Credentials(headers_of(fields), certificate)
        return ANONYMOUS


NO_CREDENTIALS: Final = HookCredentials({})


def _names(url: str) -> Iterator[str]:
    """Yield the user names that match a URL's host, the most specific name first."""
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port or 443
    for target in (f"{host}:{port}", host) if port == 443 else (f"{host}:{port}",):
        yield target
        steps = target.split(".")
        yield from (f"*.{'.'.join(steps[at:])}" for at in range(1, len(steps)))


def read_credentials(document: Document | None) -> HookCredentials:
    """Return the credentials from the kubeconfig that a WebhookAdmissionConfiguration names.

    Raises `SettingsError` if the file is missing or invalid.
    """
    if document is None:
        return NO_CREDENTIALS
    found = document.value.get("kind") if isinstance(document.value, dict) else None
    kind = "WebhookAdmission" if found == "WebhookAdmission" else "WebhookAdmissionConfiguration"
    name = document.read(kind, _VERSIONS, _Configuration).kubeconfig
    if not name:
        return NO_CREDENTIALS
    file = document.file.parent / Path(name).expanduser()
    if not file.is_file():
        raise document.refuse(f"kubeConfigFile must name a file, not {name!r}", "kubeConfigFile")
    users = users_of(file)
    for user, fields in users.items():
        if "exec" in fields:
            raise document.refuse(
                f"user {user!r} has a credential plugin, which is not supported for webhooks", "kubeConfigFile"
            )
    return HookCredentials(users)
