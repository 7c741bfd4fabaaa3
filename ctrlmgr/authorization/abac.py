"""The ABAC authorizer allows a request if a line of a policy file allows it, and otherwise has no opinion.

Each line of the file is a policy as JSON: a Policy of abac.authorization.kubernetes.io/v1beta1, or the spec of a v0
policy, which has no apiVersion and kind. Empty lines and lines that start with `#` are skipped. The file is read once.

Source: Kubernetes' `pkg/auth/authorizer/abac/abac.go`, `pkg/apis/abac/{v0,v1beta1}/conversion.go`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec
import structlog

from ctrlmgr.authentication.user import AUTHENTICATED, User
from ctrlmgr.authorization.attributes import Attributes
from ctrlmgr.authorization.authorizer import ALLOWED, Decision, Immediate, RuleListing, Verdict
from ctrlmgr.authorization.rbac.policy_rules import PolicyRule
from ctrlmgr.errors import SettingsError
from ctrlmgr.golang.go_text import quote

log = structlog.get_logger(__name__)

_GROUP: Final = "abac.authorization.kubernetes.io"
_READING: Final = ("get", "list", "watch")
_NO_MATCH: Final = Verdict(Decision.NO_OPINION, "No policy matched.")


class AbacPolicy(msgspec.Struct, frozen=True, rename="camel"):
    """A policy: the users that it concerns, and the requests that it allows for these users.

    `*` matches every value.
    """

    user: str = ""
    group: str = ""
    readonly: bool = False
    api_group: str = ""
    resource: str = ""
    namespace: str = ""
    non_resource_path: str = ""

    def allows(self, user: User, attributes: Attributes) -> bool:
        """Return whether the policy allows a request of `user`."""
        if not self.concerns(user) or (self.readonly and attributes.verb not in _READING):
            return False
        if not attributes.is_resource:
            return self._has_path(attributes.path)
        return (
            self.namespace in ("*", attributes.namespace)
            and self.resource in ("*", attributes.resource)
            and self.api_group in ("*", attributes.group)
        )

    def concerns(self, user: User) -> bool:
        """Return whether the policy applies to `user`; if the policy names a user and a group, both must match."""
        if self.user and self.user != user.name:
            return False
        if self.group and self.group not in user.groups:
            return False
        return bool(self.user or self.group)

    def _has_path(self, path: str) -> bool:
        own = self.non_resource_path
        return own in ("*", path) or (own.endswith("*") and path.startswith(own.rstrip("*")))

    def rules(self, namespace: str) -> Sequence[PolicyRule]:
        """Return the policy as RBAC-like rules; the result is empty if the policy does not apply to the namespace."""
        if self.namespace not in ("*", namespace):
            return ()
        verbs = _READING if self.readonly else ("*",)
        resources = [PolicyRule(verbs, (self.api_group,), (self.resource,))] if self.resource else []
        paths = [PolicyRule(verbs, urls=(self.non_resource_path,))] if self.non_resource_path else []
        return resources + paths


class _Versioned(msgspec.Struct, frozen=True, rename="camel"):
    """A line of the file with its version, before it is converted."""

    api_version: str = ""
    kind: str = ""
    spec: AbacPolicy = AbacPolicy()


class AbacAuthorizer(Immediate):
    """Authorizes requests by ABAC policies."""

    def __init__(self, policies: Sequence[AbacPolicy]) -> None:
        """Create an authorizer that allows a request if at least one of `policies` allows it."""
        self._policies = policies

    def authorize(self, user: User, attributes: Attributes) -> Verdict:
        """Return whether a policy allows the request."""
        return ALLOWED if any(each.allows(user, attributes) for each in self._policies) else _NO_MATCH

    def rules(self, user: User, namespace: str) -> RuleListing:
        """Return the policies that apply to `user`, as RBAC-like rules, in the order of the file."""
        return RuleListing([rule for each in self._policies if each.concerns(user) for rule in each.rules(namespace)])


def read_policies(file: Path) -> Sequence[AbacPolicy]:
    """Return the policies in a file. Raises `SettingsError` if the file is unreadable or a line is not a policy."""
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"error reading policy file {file}: {error}") from error
    policies, unversioned = [], False
    for number, line in enumerate(lines, 1):
        if line.strip() and not line.strip().startswith("#"):
            try:
                versioned = msgspec.json.decode(line, type=_Versioned)
                policies.append(_converted(versioned, line))
            except ValueError as error:
                raise SettingsError(f"error reading policy file {file}, line {number}: {line}: {error}") from error
            unversioned = unversioned or not (versioned.api_version and versioned.kind)
    if unversioned:
        log.warning("the policy file contains policies without apiVersion and kind", file=str(file))
    return policies


def _converted(versioned: _Versioned, line: str) -> AbacPolicy:
    """Return the policy of a line; raises ValueError if the line has an unknown kind or version."""
    version, kind = versioned.api_version, versioned.kind
    if version and kind:
        if (version, kind) == (f"{_GROUP}/v1beta1", "Policy"):
            return _of_all_users(versioned.spec)
        if (version, kind) != (f"{_GROUP}/v0", "Policy"):
            raise ValueError(f"no kind {quote(kind)} is registered for version {quote(version)}")
    return _from_v0(msgspec.json.decode(line, type=AbacPolicy))


def _of_all_users(policy: AbacPolicy) -> AbacPolicy:
    """Return a v0 policy with `*` for the user or the group replaced by the group of all authenticated users."""
    if "*" not in (policy.user, policy.group):
        return policy
    return msgspec.structs.replace(policy, user="", group=AUTHENTICATED)


def _from_v0(policy: AbacPolicy) -> AbacPolicy:
    """Convert a policy of v0, in which an empty field matches everything."""
    policy = policy if policy.user or policy.group else msgspec.structs.replace(policy, group=AUTHENTICATED)
    return msgspec.structs.replace(
        _of_all_users(policy),
        namespace=policy.namespace or "*",
        resource=policy.resource or "*",
        api_group="*",
        non_resource_path="" if policy.namespace or policy.resource else "*",
    )
