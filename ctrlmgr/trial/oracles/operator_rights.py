"""The operator's rights: which were granted, which the operator used, and oracle `missing-right`.

The log contains the writes of the operator. Reads and refused requests are known only if the caller passes them.
Unused rights are no finding, because they may be needed in situations that the trial did not cause.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from ctrlmgr.api.resource import Resource
from ctrlmgr.eventlog import Event, EventType
from ctrlmgr.trial.finding import Finding
from ctrlmgr.trial.oracles.kept_log import KeptLog, State, fields_of

MISSING = "missing-right"

_GROUP: Final = "rbac.authorization.k8s.io"
_ALL: Final = "*"
_VERBS: Final = {EventType.ADDED: ("create",), EventType.MODIFIED: ("update", "patch"), EventType.DELETED: ("delete",)}


class Request(NamedTuple):
    """A kind of request: verb and resource; `resource` may include a subresource, as in `pods/status`."""

    group: str
    resource: str
    verb: str
    is_allowed: bool = True

    def __str__(self) -> str:
        return f"{self.verb} {self.resource}{f'.{self.group}' if self.group else ''}"


class Rights(NamedTuple):
    """The granted rights of an operator, of which some were used; a part may be `*`."""

    used: tuple[Request, ...]
    unused: tuple[Request, ...]


def rights(log: KeptLog, requests: Iterable[Request] = (), groups: Sequence[str] = ()) -> Rights:
    """Return the rights that RBAC grants the operator at the end of a run, as used and unused ones.

    `requests` are requests that the log does not contain, such as reads; `groups` are the groups of the operator's
    user.
    """
    seen = {*requests, *written(log)}
    granted = sorted({*_granted(log.end, log.record.user, groups)})
    used = [each for each in granted if any(_covers(each, one) for one in seen)]
    return Rights(tuple(used), tuple(each for each in granted if each not in used))


def missing_rights(requests: Iterable[Request]) -> list[Finding]:
    """Return a finding for each kind of request that the API server refused with 403 in an unperturbed run."""
    refused = sorted({each for each in requests if not each.is_allowed})
    return [
        Finding(MISSING, f"The operator's rights do not allow a request that it makes: {each}.") for each in refused
    ]


def written(log: KeptLog) -> set[Request]:
    """Return the kinds of the operator's writes.

    The log does not say whether a change was an update or a patch, or whether it was a write of the status; the result
    contains each of these kinds.
    """
    return {each for step in log.by_operator for each in _requests_of(step.event)}


def _requests_of(event: Event) -> Iterator[Request]:
    for verb in _VERBS[EventType(event.type)]:
        yield Request(event.resource.group, event.resource.plural, verb)
        if event.type == EventType.MODIFIED:
            yield Request(event.resource.group, f"{event.resource.plural}/status", verb)


def _granted(state: State, user: str, groups: Sequence[str]) -> Iterator[Request]:
    roles = {(obj.kind, obj.namespace, obj.name): fields_of(obj) for obj in _of_rbac(state, "clusterroles", "roles")}
    for obj in _of_rbac(state, "clusterrolebindings", "rolebindings"):
        fields = fields_of(obj)
        if any(_is_subject(each, user, groups) for each in fields.get("subjects") or ()):
            kind, name = fields["roleRef"]["kind"], fields["roleRef"]["name"]
            role = roles.get((kind, "" if kind == "ClusterRole" else obj.namespace, name))
            yield from _rules(role or {})


def _of_rbac(state: State, *plurals: str) -> Iterator[Any]:
    wanted = {Resource(_GROUP, plural) for plural in plurals}
    return (obj for place, obj in state.items() if place.resource in wanted)


def _is_subject(subject: dict[str, Any], user: str, groups: Sequence[str]) -> bool:
    name = subject.get("name")
    if subject.get("kind") == "ServiceAccount":
        return user == f"system:serviceaccount:{subject.get('namespace')}:{name}"
    return (subject.get("kind") == "User" and name == user) or (subject.get("kind") == "Group" and name in groups)


def _rules(role: dict[str, Any]) -> Iterator[Request]:
    for rule in role.get("rules") or ():
        for group in rule.get("apiGroups") or ():
            for resource in rule.get("resources") or ():
                yield from (Request(group, resource, verb) for verb in rule.get("verbs") or ())


def _covers(granted: Request, request: Request) -> bool:
    resource, _, part = request.resource.partition("/")
    resources = (_ALL, request.resource, f"*/{part}") if part else (_ALL, resource)
    return (
        granted.group in (_ALL, request.group)
        and granted.resource in resources
        and granted.verb in (_ALL, request.verb)
    )
