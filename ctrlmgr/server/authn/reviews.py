"""Reviews: objects that are questions about users and rights, answered at once and never stored.

| kind | asks |
|---|---|
| SelfSubjectReview | who am I? |
| SelfSubjectAccessReview, SelfSubjectRulesReview | what may I do? |
| SubjectAccessReview, LocalSubjectAccessReview | what may somebody else do? |
| TokenReview | whose token is this? |

Rules: `pkg/registry/authorization`, `pkg/registry/authentication`, `pkg/apis/authorization/validation`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ctrlmgr.api.field import FieldError, invalid, refuse
from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.engine.kind import Kind
from ctrlmgr.errors import BadRequest, Invalid
from ctrlmgr.server.authn.access import Attributes, Authenticator, Authorizer, User

_NEITHER = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
_READING = ["get", "list", "watch"]
_NOBODY = "at least one of user or group must be specified"


class Question(NamedTuple):
    """A review that somebody has sent."""

    kind: Kind
    namespace: str
    """Of the path; empty for kinds that are in none."""
    fields: Unstructured
    """Its decoded body, the answer's to be."""
    user: User
    """Who asks."""

    @property
    def spec(self) -> dict[str, Any]:
        """What is asked."""
        spec: dict[str, Any] = self.fields.get("spec") or {}
        return spec


class Reviews:
    """Answers reviews; pure but for what the authenticator and the authorizer look up."""

    def __init__(self, authenticator: Authenticator, authorizer: Authorizer) -> None:
        """Ask `authenticator` whose a token is, `authorizer` who may do what."""
        self._authenticator = authenticator
        self._authorizer = authorizer
        self._answers: dict[str, Callable[[Question], dict[str, Any]]] = {
            "SelfSubjectReview": lambda question: {"userInfo": _user_info(question.user)},
            "SelfSubjectAccessReview": lambda question: self._access(question, question.user),
            "SelfSubjectRulesReview": self._rules,
            "SubjectAccessReview": self._subject_access,
            "LocalSubjectAccessReview": self._local_access,
            "TokenReview": self._token,
        }

    def covers(self, kind: Kind) -> bool:
        """Whether objects of a kind are reviews."""
        return kind.name in self._answers

    def answer(self, question: Question) -> Unstructured:
        """Return the review with its status; raises `Invalid` or `BadRequest` for what cannot be asked."""
        answer = self._answers[question.kind.name]
        return {**question.fields, "status": answer(question)}

    def _access(self, question: Question, user: User, errors: Sequence[FieldError] = ()) -> dict[str, Any]:
        errors = [*_spec_errors(question.spec), *errors]
        if errors:
            raise refuse(question.kind.name, question.kind.resource.group, "", errors)
        resource = question.spec.get("resourceAttributes")
        attributes = _of_path(question.spec["nonResourceAttributes"]) if resource is None else _of_resource(resource)
        if self._authorizer.authorize(user, attributes):
            return {"allowed": True}
        reason = self._authorizer.reason(user, attributes)
        return {"allowed": False, "reason": reason} if reason else {"allowed": False}

    def _subject_access(self, question: Question) -> dict[str, Any]:
        """Answer for whom a review names."""
        spec = question.spec
        name, groups = spec.get("user", ""), tuple(spec.get("groups") or ())
        extra = {key: tuple(values) for key, values in (spec.get("extra") or {}).items()}
        nobody = [] if name or groups else [invalid("spec.user", name, _NOBODY)]
        return self._access(question, User(name, spec.get("uid", ""), groups, extra), nobody)

    def _local_access(self, question: Question) -> dict[str, Any]:
        """Answer for one namespace, the path's."""
        path, resource = question.spec.get("nonResourceAttributes"), question.spec.get("resourceAttributes")
        if path is not None:
            raise _refused(question, invalid("spec.nonResourceAttributes", path, "disallowed on this kind of request"))
        namespace = (resource or {}).get("namespace", "")
        if resource is not None and namespace != question.namespace:
            field = "spec.resourceAttributes.namespace"
            raise _refused(question, invalid(field, namespace, "must match metadata.namespace"))
        return self._subject_access(question)

    def _rules(self, question: Question) -> dict[str, Any]:
        namespace = question.spec.get("namespace", "")
        if not namespace:
            raise BadRequest("no namespace on request")
        verbs = next((each for each in (["*"], _READING) if self._may(question.user, each, namespace)), None)
        anywhere = self._authorizer.authorize(question.user, Attributes("*", "*"))
        return {
            "resourceRules": [{"verbs": verbs, "apiGroups": ["*"], "resources": ["*"]}] if verbs else [],
            "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}] if anywhere else [],
            "incomplete": False,
        }

    def _may(self, user: User, verbs: Sequence[str], namespace: str) -> bool:
        """Whether a user may do all that with anything in a namespace."""
        asked = (Attributes(verb, "", "*", "*", "*", "", namespace) for verb in verbs)
        return all(self._authorizer.authorize(user, attributes) for attributes in asked)

    def _token(self, question: Question) -> dict[str, Any]:
        token = question.spec.get("token", "")
        if not token:
            raise BadRequest("token is required for TokenReview in authentication")
        user = self._authenticator.token_user(token)
        if user is None:
            return {"user": {}, "error": "invalid bearer token"}
        return {"authenticated": True, "user": _user_info(user)}


def _user_info(user: User) -> dict[str, Any]:
    info = {
        "username": user.name,
        "uid": user.uid,
        "groups": list(user.groups),
        "extra": {name: list(values) for name, values in user.extra.items()},
    }
    return {field: value for field, value in info.items() if value}


def _spec_errors(spec: dict[str, Any]) -> list[FieldError]:
    resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if resource is not None and path is not None:
        return [
            invalid("spec.nonResourceAttributes", path, "cannot be specified in combination with resourceAttributes")
        ]
    return [invalid("spec.resourceAttributes", None, _NEITHER)] if resource is None and path is None else []


def _of_resource(asked: dict[str, Any]) -> Attributes:
    fields = ("group", "version", "resource", "subresource", "namespace", "name")
    return Attributes(asked.get("verb", ""), "", *(asked.get(field, "") for field in fields))


def _of_path(asked: dict[str, Any]) -> Attributes:
    return Attributes(asked.get("verb", ""), asked.get("path", ""))


def _refused(question: Question, error: FieldError) -> Invalid:
    return refuse(question.kind.name, question.kind.resource.group, "", [error])
