"""The user names of service accounts and nodes.

Source: apiserver `pkg/authentication/serviceaccount/util.go`, `pkg/authentication/user/user.go`.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from ctrlmgr.authentication.user import AUTHENTICATED, User

NODES: Final = "system:nodes"
NODE_PREFIX: Final = "system:node:"
SERVICE_ACCOUNTS: Final = "system:serviceaccounts"
SERVICE_ACCOUNT_PREFIX: Final = "system:serviceaccount:"

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", re.ASCII)
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", re.ASCII)
_LONGEST_SUBDOMAIN = 253


class ServiceAccountName(NamedTuple):
    """The namespace and name of a service account."""

    namespace: str
    name: str

    @property
    def username(self) -> str:
        """The user name that Kubernetes gives to the service account."""
        return f"{SERVICE_ACCOUNT_PREFIX}{self.namespace}:{self.name}"

    @property
    def groups(self) -> tuple[str, str]:
        """The groups of the service account, without the group `system:authenticated`."""
        return SERVICE_ACCOUNTS, f"{SERVICE_ACCOUNTS}:{self.namespace}"

    @property
    def user(self) -> User:
        """The user of the service account, without a uid."""
        return User(self.username, "", (*self.groups, AUTHENTICATED))


def service_account_of(username: str) -> ServiceAccountName | None:
    """Return the service account with this user name, or None if it is not the user name of a service account."""
    if not username.startswith(SERVICE_ACCOUNT_PREFIX):
        return None
    namespace, separator, name = username.removeprefix(SERVICE_ACCOUNT_PREFIX).partition(":")
    if not separator or not _LABEL.fullmatch(namespace) or not is_subdomain(name):
        return None
    return ServiceAccountName(namespace, name)


def node_of(username: str) -> str | None:
    """Return the name of the node with this user name, or None if it is not the user name of a node."""
    if not username.startswith(NODE_PREFIX):
        return None
    name = username.removeprefix(NODE_PREFIX)
    return name if is_subdomain(name) else None


def is_subdomain(name: str) -> bool:
    """Return whether `name` is a DNS subdomain (RFC 1123)."""
    return len(name) <= _LONGEST_SUBDOMAIN and _SUBDOMAIN.fullmatch(name) is not None
