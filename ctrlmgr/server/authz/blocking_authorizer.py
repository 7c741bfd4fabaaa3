"""Lets worker threads call an authorizer on the event loop, even if the authorizer must call another process.

Guarantees: the worker thread waits for the verdict; the event loop never waits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeAlias

from ctrlmgr.authentication.user import User
from ctrlmgr.authorization.attributes import Attributes
from ctrlmgr.authorization.authorizer import Authorizer, Verdict

Decide: TypeAlias = Callable[[User, Attributes], Verdict]
"""A function that returns a verdict; any thread except the event loop's thread may call the function."""


def waiting(authorizer: Authorizer) -> Decide:
    """Return a function that calls `authorizer` on the running event loop.

    The caller of `waiting` must be the event loop's thread.
    """
    loop = asyncio.get_running_loop()

    def decide(user: User, attributes: Attributes) -> Verdict:
        verdict = authorizer.authorize(user, attributes)
        if verdict is not None:
            return verdict
        return asyncio.run_coroutine_threadsafe(authorizer.ask(user, attributes), loop).result()

    return decide
