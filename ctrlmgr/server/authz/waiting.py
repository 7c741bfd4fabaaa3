"""Asks an authorizer on threads that may wait, whichever process it has to ask in turn.

Guarantees: the threads wait, the event loop does not.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeAlias

from ctrlmgr.authentication.user import User
from ctrlmgr.authorization.attributes import Attributes
from ctrlmgr.authorization.authorizer import Authorizer, Verdict

Decide: TypeAlias = Callable[[User, Attributes], Verdict]
"""Returns a verdict; any thread may call it that may wait."""


def waiting(authorizer: Authorizer) -> Decide:
    """Return what asks `authorizer` on the event loop that runs; called on that loop, for other threads."""
    loop = asyncio.get_running_loop()

    def decide(user: User, attributes: Attributes) -> Verdict:
        verdict = authorizer.authorize(user, attributes)
        if verdict is not None:
            return verdict
        return asyncio.run_coroutine_threadsafe(authorizer.ask(user, attributes), loop).result()

    return decide
