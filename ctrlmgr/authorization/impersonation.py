"""Impersonation: reads the user from the `Impersonate-*` headers, and checks the right to act as this user.

Guarantees:
- Each part of the impersonated user (name, uid, groups, extra) requires its own right.
- The impersonation modes are tried in order, and the first mode that allows all parts is used. The modes of constrained
  impersonation, which limit the allowed actions, precede the legacy mode. If no mode allows the request, the error of
  the first applicable mode is returned.
- Constrained modes never impersonate a member of `system:masters`, and give nodes and service accounts only their own
  groups.

Source: apiserver `pkg/endpoints/filters/impersonation/{constrained_impersonation,mode}.go`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple
from urllib.parse import unquote_to_bytes

from ctrlmgr.authentication.user import ANONYMOUS, AUTHENTICATED, MASTERS, UNAUTHENTICATED, User
from ctrlmgr.authentication.user_names import NODES, is_subdomain, node_of, service_account_of
from ctrlmgr.authorization.attributes import Attributes, refusal
from ctrlmgr.authorization.authorizer import Authorizer
from ctrlmgr.authorization.rbac.policy_rules import quoted
from ctrlmgr.caches import BoundedCache
from ctrlmgr.errors import ApiError, BadRequest

PREFIX = b"impersonate-"
_USER, _UID, _GROUP, _EXTRA = b"impersonate-user", b"impersonate-uid", b"impersonate-group", b"impersonate-extra-"

_AUTHENTICATION = "authentication.k8s.io"
_NODE_NAME = "authentication.kubernetes.io/node-name"
_NODE_KEYS = "authentication.kubernetes.io/associated-node-keys"
_MANY = 4
"""The number of groups or values from which the right to impersonate all groups or all values is checked first."""


_ENTRIES: Final = 10_000
_SIZE: Final = 4 * 1024 * 1024
"""The maximum total size, in bytes, of the user names whose impersonation mode is cached."""


class Impersonated(NamedTuple):
    """The impersonated user, and the mode that allowed the impersonation."""

    user: User
    constraint: str = ""
    """The verb of the constrained mode; empty for the legacy mode."""


def wanted_user(headers: Sequence[tuple[bytes, bytes]]) -> User | None:
    """Return the user to impersonate from `headers` (names in lower case), or None if the headers name no user.

    Raises `BadRequest` if the headers contain a uid, groups or extra fields but no user name.
    """
    name, uid, groups, extra = "", "", list[str](), dict[str, list[str]]()
    for header, value in headers:
        if header == _USER:
            name = name or _text(value)
        elif header == _UID:
            uid = uid or _text(value)
        elif header == _GROUP:
            groups.append(_text(value))
        elif header.startswith(_EXTRA):
            extra.setdefault(_extra_key(header.removeprefix(_EXTRA)), []).append(_text(value))
    user = User(name, uid, tuple(groups), {key: tuple(values) for key, values in extra.items()})
    if not name and (uid or groups or extra):
        raise BadRequest(f"requested {_shown(user)} without impersonating a user name")
    return user if name else None


class Impersonation:
    """Checks impersonation, and caches, for each requesting user, the mode that last allowed an impersonation.

    The check of a request begins with the impersonation mode that was cached for the user. Therefore, if all modes
    refuse the request, the error of the cached mode is returned.
    """

    def __init__(self, authorizer: Authorizer) -> None:
        """Create the checks of impersonation; `authorizer` decides whether a user has the required rights."""
        self._authorizer = authorizer
        self._last: BoundedCache[str, _Mode] = BoundedCache("impersonation-modes", entries=_ENTRIES, size=_SIZE)

    async def impersonate(self, user: User, requested: User, attributes: Attributes) -> Impersonated:
        """Return the effective user for a request of `user`; raises `Forbidden` if no mode allows the impersonation."""
        last = self._last.get(user.name)
        modes = _MODES if last is None else (last, *(mode for mode in _MODES if mode is not last))
        impersonated, mode = await _impersonate(user, requested, attributes, self._authorizer, modes)
        if mode is not last:
            self._last.put(user.name, mode, len(user.name))
        return impersonated


async def impersonate(user: User, requested: User, attributes: Attributes, authorizer: Authorizer) -> Impersonated:
    """Return the effective user for a request of `user`; raises `Forbidden` if no mode allows the impersonation."""
    return (await _impersonate(user, requested, attributes, authorizer, _MODES))[0]


async def _impersonate(
    user: User, requested: User, attributes: Attributes, authorizer: Authorizer, modes: Sequence[_Mode]
) -> tuple[Impersonated, _Mode]:
    refused: ApiError | None = None
    for mode in modes:
        if not mode.applies(requested, user):
            continue
        try:
            return await mode.check(_ImpersonationCheck(user, authorizer, mode), requested, attributes), mode
        except ApiError as error:
            refused = refused or error
    assert refused is not None, "the last mode applies to every user"
    raise refused


class _ImpersonationCheck(NamedTuple):
    """The authorization checks for one impersonated user in one mode."""

    user: User
    authorizer: Authorizer
    mode: _Mode

    async def require(self, attributes: Attributes) -> None:
        """Raise `Forbidden` unless the requesting user has the right to perform an action."""
        user = self.user
        if self.mode.name == _ASSOCIATED:
            user = user._replace(extra={_NODE_KEYS: tuple(sorted(user.extra))})
            if attributes.verb == self.mode.verb:
                attributes = attributes._replace(name="*")
        verdict = self.authorizer.authorize(user, attributes)
        if verdict is None:
            verdict = await self.authorizer.ask(user, attributes)
        if not verdict.allows:
            reason = ": ".join(part for part in (verdict.error, verdict.reason) if part)
            raise refusal(self.user, attributes, reason)

    def about(self, resource: str, name: str, *, namespace: str = "", part: str = "", own: bool = False) -> Attributes:
        """Return the attributes of the request that represents the impersonation of one part of a user.

        If `own` is set, the resource is in the group `authentication.k8s.io` even in the legacy mode.
        """
        group = _AUTHENTICATION if self.mode.name or own else ""
        return Attributes(self.mode.verb, "", group, "v1", resource, part, namespace, name)


class _Mode(NamedTuple):
    """A mode of impersonation, and the rights that the mode requires."""

    name: str
    """The name of the mode; empty for the legacy mode."""
    applies: Callable[[User, User], bool]
    """Returns whether the mode applies; its arguments are the user to impersonate and the requesting user."""

    @property
    def verb(self) -> str:
        """The verb of the requests that represent an impersonation in this mode."""
        return f"impersonate:{self.name}" if self.name else "impersonate"

    async def check(self, asking: _ImpersonationCheck, requested: User, attributes: Attributes) -> Impersonated:
        """Return the impersonated user; raises `Forbidden` if a required right is missing."""
        if self.name:
            await asking.require(attributes._replace(verb=f"impersonate-on:{self.name}:{attributes.verb}"))
        groups = await self._check_name(asking, requested)
        if requested.uid:
            await asking.require(asking.about("uids", requested.uid, own=True))
        await self._check_groups(asking, requested.groups)
        await self._check_extra(asking, requested.extra)
        return Impersonated(_completed(requested._replace(groups=groups)), self.verb if self.name else "")

    async def _check_name(self, asking: _ImpersonationCheck, requested: User) -> tuple[str, ...]:
        """Check the right to impersonate the user's name, and return the groups of that user."""
        question, groups = asking.about("users", requested.name), requested.groups
        if self.name and (node := node_of(requested.name)) is not None:
            question, groups = asking.about("nodes", node), (NODES,)
        if (account := service_account_of(requested.name)) is not None:
            question = asking.about("serviceaccounts", account.name, namespace=account.namespace)
            groups = requested.groups or account.groups
        await asking.require(question)
        return groups

    async def _check_groups(self, asking: _ImpersonationCheck, groups: Sequence[str]) -> None:
        if self.name and "" in groups:
            raise _never(asking, "groups", "impersonating the empty string group is not allowed")
        if self.name and MASTERS in groups:
            raise _never(asking, "groups", f"impersonating the {MASTERS} group is not allowed", name=MASTERS)
        if self.name and len(groups) >= _MANY and await _may(asking, asking.about("groups", "*")):
            return
        for group in groups:
            await asking.require(asking.about("groups", group))

    async def _check_extra(self, asking: _ImpersonationCheck, extra: Mapping[str, Sequence[str]]) -> None:
        if self.name and (problem := _extra_problem(extra)):
            raise _never(asking, "userextras", problem)
        many = len(extra) >= _MANY or sum(map(len, extra.values())) >= _MANY
        if self.name and many and await _may(asking, asking.about("userextras", "*", part="*")):
            return
        for key, values in extra.items():
            for value in values:
                await asking.require(asking.about("userextras", value, part=key, own=True))


_ASSOCIATED = "associated-node"


def _has_name_only(requested: User) -> bool:
    return not (requested.uid or requested.groups or requested.extra)


def _is_on_node(requested: User, user: User) -> bool:
    node = node_of(requested.name)
    bound = node is not None and user.extra.get(_NODE_NAME) == (node,)
    return bound and _has_name_only(requested) and service_account_of(user.name) is not None


_MODES = (
    _Mode(_ASSOCIATED, _is_on_node),
    _Mode("arbitrary-node", lambda wanted, user: _has_name_only(wanted) and node_of(wanted.name) is not None),
    _Mode(
        "serviceaccount", lambda wanted, user: _has_name_only(wanted) and service_account_of(wanted.name) is not None
    ),
    _Mode("user-info", lambda wanted, user: node_of(wanted.name) is None and service_account_of(wanted.name) is None),
    _Mode("", lambda wanted, user: True),
)


async def _may(asking: _ImpersonationCheck, attributes: Attributes) -> bool:
    try:
        await asking.require(attributes)
    except ApiError:
        return False
    return True


def _never(asking: _ImpersonationCheck, resource: str, why: str, *, name: str = "") -> ApiError:
    return refusal(asking.user, asking.about(resource, name), why)


def _completed(user: User) -> User:
    """Return the user with the group `system:authenticated` or `system:unauthenticated` added."""
    group = UNAUTHENTICATED if user.name == ANONYMOUS.name else AUTHENTICATED
    if group in user.groups or UNAUTHENTICATED in user.groups:
        return user
    return user._replace(groups=(*user.groups, group))


def _extra_problem(extra: Mapping[str, Sequence[str]]) -> str:
    """Return the reason why a constrained mode cannot impersonate the extra fields; empty if there is no reason."""
    for key, values in extra.items():
        if not key:
            return "impersonating the empty string key in extra is not allowed"
        domain, _, path = key.partition("/")
        if not path or not is_subdomain(domain):
            detail = 'must be a domain-prefixed path (such as "acme.io/foo")'
            return f'impersonating an invalid key in extra is not allowed: extra.key: Invalid value: "{key}": {detail}'
        if key != key.lower():
            return f'impersonating a non-lowercase key in extra is not allowed: "{key}"'
        if "" in values:
            return "impersonating the empty string value in extra is not allowed"
    return ""


def _extra_key(name: bytes) -> str:
    """Return the key of an extra field from a header's name, percent-decoded if the encoding is valid."""
    parts = name.split(b"%")
    valid = all(len(part) >= 2 and _is_hex(part[:2]) for part in parts[1:])
    return _text(unquote_to_bytes(name) if valid else name)


def _is_hex(digits: bytes) -> bool:
    return all(digit in b"0123456789abcdefABCDEF" for digit in digits)


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace")


def _shown(user: User) -> str:
    """Format a user as Go's `%#v` does."""
    groups = "[]string{" + quoted(user.groups)[1:-1].replace('" "', '", "') + "}" if user.groups else "[]string(nil)"
    pairs = (f'"{key}":[]string{{{quoted(values)[1:-1]}}}' for key, values in user.extra.items())
    extra = "map[string][]string{" + ", ".join(pairs) + "}" if user.extra else "map[string][]string(nil)"
    return f'&user.DefaultInfo{{Name:"", UID:"{user.uid}", Groups:{groups}, Extra:{extra}}}'
