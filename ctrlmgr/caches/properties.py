"""A property that is computed once for each instance.

The property equals Python 3.12's `functools.cached_property`, which has no lock. In earlier versions of Python, all
instances share one lock, and the lock costs more than most computations. If two threads read the property for the first
time at the same time, both compute the value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

S = TypeVar("S")
T = TypeVar("T")


class cached_property(Generic[S, T]):  # noqa: N801  # a decorator, named as the one that it replaces
    """Converts a method without arguments to a cached attribute; instances of the class must have a `__dict__`."""

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
