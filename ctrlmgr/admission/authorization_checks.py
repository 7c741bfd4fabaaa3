"""Authorization checks of admission: a check returns immediately if the authorizer already knows the verdict.

If the authorizer must first query another process, the check waits for the verdict.
"""

from __future__ import annotations

from ctrlmgr.authentication.user import User
from ctrlmgr.authorization import attributes as asked
from ctrlmgr.authorization.authorizer import Authorizer, Verdict
from ctrlmgr.engine.admission_attributes import Attributes
from ctrlmgr.engine.operations import Consult, Operation


def author_of(attributes: Attributes) -> User:
    """Return the user that sent the write."""
    requester = attributes.requester
    extra = {key: tuple(values) for key, values in requester.extra.items()}
    return User(requester.user, requester.uid, requester.groups, extra)


def verdict_of(authorizer: Authorizer, user: User, question: asked.Attributes) -> Operation[Verdict]:
    """Return the verdict of `authorizer`; wait if the authorizer must query other processes."""
    verdict = authorizer.authorize(user, question)
    if verdict is None:
        answer: Verdict = yield Consult(lambda: authorizer.ask(user, question))
        return answer
    return verdict
