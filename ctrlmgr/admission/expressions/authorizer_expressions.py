"""Evaluates CEL expressions that query an authorizer.

If the authorizer does not know a verdict yet, the evaluation stops. When the authorizer has returned the verdict, the
evaluation starts again from the beginning.

Guarantees: one expression sends the same query at most once, and the event loop never blocks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from ctrlmgr.admission.authorization_checks import author_of, verdict_of
from ctrlmgr.authentication.user import User
from ctrlmgr.authentication.user_names import ServiceAccountName
from ctrlmgr.authorization.attributes import Attributes as Asked
from ctrlmgr.authorization.attributes import path_attributes
from ctrlmgr.authorization.authorizer import Authorizer, Verdict
from ctrlmgr.engine.admission_attributes import Attributes
from ctrlmgr.engine.operations import Operation
from ctrlmgr.engine.selectors import FieldSelector, LabelSelector
from ctrlmgr.engine.selectors.requirements import field_requirements, label_requirements
from ctrlmgr.errors import BadRequest
from ctrlmgr.expressions.library.authorizing import Answer, Ask, Question

T = TypeVar("T")


class _Unanswered(Exception):
    """Raised if the authorizer does not know the verdict for a query yet."""

    def __init__(self, question: Question) -> None:
        super().__init__()
        self.question = question


def answering(compute: Callable[[Ask], T], authorizer: Authorizer, attributes: Attributes) -> Operation[T]:
    """Return the result of `compute`, a function whose argument is a function that queries the authorizer."""
    author = author_of(attributes)
    known: dict[Question, Answer] = {}

    def ask(question: Question) -> Answer:
        if question not in known:
            verdict = authorizer.authorize(_user(author, question), _access_check(question))
            if verdict is None:
                raise _Unanswered(question)
            known[question] = _answer(verdict)
        return known[question]

    while True:
        try:
            return compute(ask)
        except _Unanswered as waiting:
            question = waiting.question
        verdict = yield from verdict_of(authorizer, _user(author, question), _access_check(question))
        known[question] = _answer(verdict)


def _answer(verdict: Verdict) -> Answer:
    return Answer(verdict.allows, verdict.reason, verdict.error)


def _user(author: User, question: Question) -> User:
    if question.account is None:
        return author
    account = ServiceAccountName(*question.account)
    return User(account.username, "", account.groups)


def _access_check(question: Question) -> Asked:
    if question.path:
        return path_attributes(question.verb, question.path)
    check = Asked(
        question.verb,
        group=question.group,
        version="*",
        resource=question.resource,
        subresource=question.subresource,
        namespace=question.namespace,
        name=question.name,
    )
    try:
        fields = field_requirements(FieldSelector.parse(question.field_selector))
        labels = label_requirements(LabelSelector.parse(question.label_selector))
    except BadRequest:
        return check  # an invalid selector does not restrict the query
    return check._replace(fields=fields, labels=labels)
