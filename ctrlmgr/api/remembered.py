"""Results that are remembered for texts worth it: what is said over and over in a cluster is short.

Guarantees: nothing is kept of a text longer than a function's bound. A cache that counts entries alone is as large as
its filler likes: some thousand texts of the three megabytes that a request may have.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import TypeVar

T = TypeVar("T")


def remembered(*, entries: int, longest: int) -> Callable[[Callable[[str], T]], Callable[[str], T]]:
    """Decorate a function of a text: its last `entries` results for texts of at most `longest` characters are kept.

    Errors are not: they are raised anew.
    """

    def decorate(function: Callable[[str], T]) -> Callable[[str], T]:
        kept = lru_cache(maxsize=entries)(function)

        @wraps(function)
        def call(text: str) -> T:
            return kept(text) if len(text) <= longest else function(text)

        return call

    return decorate
