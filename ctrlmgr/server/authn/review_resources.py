"""Answers reviews. A review is an object with which a client queries users or rights; reviews are never stored.

| kind | asks |
|---|---|
| SelfSubjectReview | the caller's own user |
| SelfSubjectAccessReview, SelfSubjectRulesReview | the caller's own rights |
| SubjectAccessReview, LocalSubjectAccessReview | the rights of another user |
| TokenReview | the user of a token |

Source: `pkg/registry/authorization`, `pkg/registry/authentication`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple, TypeAlias

from ctrlmgr.api.field import errors_of, refuse
from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.authentication.user import CredentialsRefused, User
from ctrlmgr.authorization.authorizer import Authorizer, Decision
from ctrlmgr.engine.kind import Kind
from ctrlmgr.errors import BadRequest
from ctrlmgr.server.authn.access import Authenticator
from ctrlmgr.server.authn.access_reviews import asked_in, review_errors

_Answer: TypeAlias = dict[str, Any]

_RULES = "SelfSubjectRulesReview"
_TYPE = ("kind", "apiVersion")
_ANEW = ("SelfSubjectReview", _RULES)
"""The kinds of reviews whose response contains no field of the request."""


class Question(NamedTuple):
    """A review object that a client has sent, with the facts that the answer needs."""

    kind: Kind
    namespace: str
    """The namespace in the URL path; empty for cluster-scoped kinds."""
    fields: Unstructured
    """The decoded body of the request, to which the response adds the status."""
    user: User
    """The user that sent the review."""
    now: str = ""
    """The current time in the format of RFC 3339, in seconds."""

    @property
    def spec(self) -> dict[str, Any]:
        """The spec of the review; empty if it is missing."""
        spec: dict[str, Any] = self.fields.get("spec") or {}
        return spec


class Reviews:
    """Answers reviews. An instance keeps no state between calls."""

    def __init__(self, authenticator: Authenticator, authorizer: Authorizer) -> None:
        """Create an instance that authenticates tokens with `authenticator` and checks rights with `authorizer`."""
        self._authenticator = authenticator
        self._authorizer = authorizer
        self._answers: dict[str, Callable[[Question], Awaitable[_Answer]]] = {
            "SelfSubjectReview": self._self,
            "SelfSubjectAccessReview": self._own_access,
            _RULES: self._rules,
            "SubjectAccessReview": self._subject_access,
            "LocalSubjectAccessReview": self._local_access,
            "TokenReview": self._token,
        }

    def covers(self, kind: Kind) -> bool:
        """Return whether the objects of a kind are reviews."""
        return kind.name in self._answers

    async def answer(self, question: Question) -> Unstructured:
        """Return the review with its status; raises `Invalid` or `BadRequest` if the review is not valid."""
        status = await self._answers[question.kind.name](question)
        fields = question.fields
        if question.kind.name in _ANEW:  # Kubernetes answers these kinds with a new object
            own = {"spec": {}} if question.kind.name == _RULES else {"metadata": {"creationTimestamp": question.now}}
            fields = {**{name: fields[name] for name in _TYPE if name in fields}, "metadata": {}, **own}
        return {**fields, "status": status}

    async def _self(self, question: Question) -> _Answer:
        return {"userInfo": _user_info(question.user)}

    async def _own_access(self, question: Question) -> _Answer:
        return await self._access(question, question.user, names_user=False)

    async def _subject_access(self, question: Question) -> _Answer:
        return await self._access(question, _subject(question.spec))

    async def _local_access(self, question: Question) -> _Answer:
        """Check that a local review asks only about the namespace in the URL path."""
        return await self._access(question, _subject(question.spec), namespace=question.namespace)

    async def _access(
        self, question: Question, user: User, *, names_user: bool = True, namespace: str | None = None
    ) -> _Answer:
        errors = errors_of(lambda: review_errors(question.fields, names_user=names_user, namespace=namespace))
        if errors:
            raise refuse("", question.kind.resource.group, "", errors)
        attributes, problems = asked_in(question.spec)
        verdict = self._authorizer.authorize(user, attributes)
        if verdict is None:
            verdict = await self._authorizer.ask(user, attributes)
        denied = verdict.decision is Decision.DENY
        error = "; ".join(filter(None, (verdict.error, *problems)))
        status = {"denied": denied, "reason": verdict.reason, "evaluationError": error}
        return {"allowed": verdict.allows, **{field: value for field, value in status.items() if value}}

    async def _rules(self, question: Question) -> _Answer:
        namespace = question.spec.get("namespace") or ""
        if not namespace:
            raise BadRequest("no namespace on request")
        listing = self._authorizer.rules(question.user, namespace)
        answer: _Answer = {
            "resourceRules": [rule.fields for rule in listing.rules if rule.resources],
            "nonResourceRules": [rule.fields for rule in listing.rules if rule.urls],
            "incomplete": listing.incomplete,
        }
        return {**answer, "evaluationError": listing.error} if listing.error else answer

    async def _token(self, question: Question) -> _Answer:
        token = question.spec.get("token", "")
        if not token:
            raise BadRequest("token is required for TokenReview in authentication")
        try:
            found = await self._authenticator.review(token, question.spec.get("audiences") or ())
        except CredentialsRefused as refusal:
            return {"user": {}, "error": refusal.explanation}
        answer: _Answer = {"authenticated": True, "user": _user_info(found.user)}
        return {**answer, "audiences": list(found.audiences)} if found.audiences else answer


def _subject(spec: dict[str, Any]) -> User:
    extra = {key: tuple(values or ()) for key, values in (spec.get("extra") or {}).items()}
    return User(spec.get("user") or "", spec.get("uid") or "", tuple(spec.get("groups") or ()), extra)


def _user_info(user: User) -> dict[str, Any]:
    info = {
        "username": user.name,
        "uid": user.uid,
        "groups": list(user.groups),
        "extra": {name: list(values) for name, values in user.extra.items()},
    }
    return {field: value for field, value in info.items() if value}
