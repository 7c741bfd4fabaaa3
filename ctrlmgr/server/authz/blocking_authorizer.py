"""Lets worker threads call an authorizer that may call another process.

Guarantees: only the calling thread waits for the other process, not the event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeAlias

from ctrlmgr.authentication.user import User
from ctrlmgr.authorization.attributes import Attributes
from ctrlmgr.authorization.authorizer import Authorizer, Verdict

Decide: TypeAlias = Callable[[User, Attributes], Verdict]
"""Returns a verdict. The returned function may be called on any thread except the event loop's."""


def waiting(authorizer: Authorizer) -> Decide:
    """Return a function that calls `authorizer` on the running event loop.

    `waiting` itself must be called on the event loop.
    """
    loop = asyncio.get_running_loop()

    def decide(user: User, attributes: Attributes) -> Verdict:
        verdict = authorizer.authorize(user, attributes)
        if verdict is not None:
            return verdict
        return asyncio.run_coroutine_threadsafe(authorizer.ask(user, attributes), loop).result()

    return decide
