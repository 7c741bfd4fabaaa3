"""Authorization checks: `authorizer.group('apps').resource('deployments').check('create').allowed()`.

Guarantees: an authorization check calls the authorizer function of the evaluation. If the function cannot return a
decision immediately, the function raises an exception that ends the evaluation. The caller evaluates the expression
again when the decision is known.

Source: apiserver `pkg/cel/library/authz.go`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final, NamedTuple

from ctrlmgr.expressions.declarations import Library
from ctrlmgr.expressions.types import Type, opaque
from ctrlmgr.expressions.values import EvalError

AUTHORIZING: Final = Library()
_function = AUTHORIZING.function
_PREFIX = "kubernetes.authorization."
_AUTHORIZER, _PATH, _GROUP, _RESOURCE, _DECISION = (
    f"{_PREFIX}{name}" for name in ("Authorizer", "PathCheck", "GroupCheck", "ResourceCheck", "Decision")
)

AUTHORIZER_TYPE: Final = opaque(_AUTHORIZER)
RESOURCE_CHECK_TYPE: Final = opaque(_RESOURCE)


class Question(NamedTuple):
    """The attributes of an authorization check."""

    verb: str = ""
    path: str = ""
    """The path of a request without a resource."""
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    account: tuple[str, str] | None = None
    """The namespace and name of the service account whose rights are checked; None means the user of the request."""
    field_selector: str = ""
    label_selector: str = ""


class Answer(NamedTuple):
    """The result of an authorization check."""

    allowed: bool
    reason: str = ""
    error: str = ""


Ask = Callable[[Question], Answer]
_NOTHING: Final = Question()


@dataclass(frozen=True, slots=True)
class AuthorizerValue:
    """An authorization check in an expression: the function that decides, and the attributes given so far."""

    ask: Ask
    about: Question = _NOTHING

    cel_type: ClassVar[Type] = AUTHORIZER_TYPE

    def narrowed(self, **fields: Any) -> Question:
        """Return a copy of the check with additional attributes."""
        return self.about._replace(**fields)


@dataclass(frozen=True, slots=True)
class PathCheck(AuthorizerValue):
    """An authorization check for a path."""

    cel_type: ClassVar[Type] = opaque(_PATH)


@dataclass(frozen=True, slots=True)
class GroupCheck(AuthorizerValue):
    """An authorization check for an API group."""

    cel_type: ClassVar[Type] = opaque(_GROUP)


@dataclass(frozen=True, slots=True)
class ResourceCheck(AuthorizerValue):
    """An authorization check for a resource."""

    cel_type: ClassVar[Type] = RESOURCE_CHECK_TYPE


@dataclass(frozen=True, slots=True)
class Decision:
    """The decision on an authorization check."""

    answer: Answer

    cel_type: ClassVar[Type] = opaque(_DECISION)


@_function("path", f"{_AUTHORIZER}.(string) -> {_PATH}")
def _path(authorizer: AuthorizerValue, path: str) -> PathCheck:
    if not path:
        raise EvalError("path must not be empty")
    return PathCheck(authorizer.ask, authorizer.narrowed(path=path))


@_function("serviceAccount", f"{_AUTHORIZER}.(string, string) -> {_AUTHORIZER}")
def _service_account(authorizer: AuthorizerValue, namespace: str, name: str) -> AuthorizerValue:
    if not name:
        raise EvalError("Invalid service account name")
    if not namespace:
        raise EvalError("Invalid service account namespace")
    return replace(authorizer, about=authorizer.about._replace(account=(namespace, name)))


@_function("group", f"{_AUTHORIZER}.(string) -> {_GROUP}")
def _group(authorizer: AuthorizerValue, group: str) -> GroupCheck:
    return GroupCheck(authorizer.ask, authorizer.narrowed(group=group))


@_function("resource", f"{_GROUP}.(string) -> {_RESOURCE}")
def _resource(check: AuthorizerValue, resource: str) -> ResourceCheck:
    return ResourceCheck(check.ask, check.narrowed(resource=resource))


def _narrowing(function: str, field: str) -> None:
    def narrow(check: ResourceCheck, value: str) -> ResourceCheck:
        return replace(check, about=check.narrowed(**{field: value}))

    _function(function, f"{_RESOURCE}.(string) -> {_RESOURCE}")(narrow)


for _name, _field in (
    ("subresource", "subresource"),
    ("namespace", "namespace"),
    ("name", "name"),
    ("fieldSelector", "field_selector"),
    ("labelSelector", "label_selector"),
):
    _narrowing(_name, _field)


@_function("check", f"{_PATH}.(string) -> {_DECISION}", f"{_RESOURCE}.(string) -> {_DECISION}")
def _check(check: AuthorizerValue, verb: str) -> Decision:
    return Decision(check.ask(check.narrowed(verb=verb)))


@_function("allowed", f"{_DECISION}.() -> bool")
def _allowed(decision: Decision) -> bool:
    return decision.answer.allowed


@_function("reason", f"{_DECISION}.() -> string")
def _reason(decision: Decision) -> str:
    return decision.answer.reason


@_function("errored", f"{_DECISION}.() -> bool")
def _errored(decision: Decision) -> bool:
    return bool(decision.answer.error)


@_function("error", f"{_DECISION}.() -> string")
def _error(decision: Decision) -> str:
    return decision.answer.error
