"""A property that is computed once for each instance.

The property is `functools.cached_property` without its lock, like that of Python 3.12. The lock is left out because all
instances share the lock, and because it costs more than most computations. Two threads that read the property at the
same time compute it twice.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

S = TypeVar("S")
T = TypeVar("T")


class cached_property(Generic[S, T]):  # noqa: N801  # a decorator, named as the one that it replaces
    """Converts a method without arguments to a cached attribute; instances must have a `__dict__`."""

    def __init__(self, compute: Callable[[S], T]) -> None:
        """Create the attribute; `method` computes its value."""
        self._compute = compute
        self.__doc__ = compute.__doc__
        self._name = ""

    def __set_name__(self, owner: type[Any], name: str) -> None:
        """Store the value under the attribute's name in the instance's `__dict__`, which Python searches first."""
        self._name = name

    def __get__(self, instance: S, owner: type[Any] | None = None) -> T:
        """Compute the value of the attribute, and store it in the instance."""
        value = self._compute(instance)
        instance.__dict__[self._name] = value
        return value
