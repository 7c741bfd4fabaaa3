"""Lets worker threads call an authorizer that may call another process.

Guarantees: only the calling thread waits, the event loop does not.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeAlias

from ctrlmgr.authentication.user import User
from ctrlmgr.authorization.attributes import Attributes
from ctrlmgr.authorization.authorizer import Authorizer, Verdict

Decide: TypeAlias = Callable[[User, Attributes], Verdict]
"""Returns a verdict. Any thread except the event loop's may call it."""


def waiting(authorizer: Authorizer) -> Decide:
    """Return a function that calls `authorizer` on the running event loop.

    This must be called on the event loop.
    """
    loop = asyncio.get_running_loop()

    def decide(user: User, attributes: Attributes) -> Verdict:
        verdict = authorizer.authorize(user, attributes)
        if verdict is not None:
            return verdict
        return asyncio.run_coroutine_threadsafe(authorizer.ask(user, attributes), loop).result()

    return decide
