"""A property that is computed once for an instance.

It is `functools.cached_property` without its lock, as Python 3.12 has it: that lock is one for all instances, and costs
more than most values. Two threads that ask at the same moment compute the same value twice.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

S = TypeVar("S")
T = TypeVar("T")


class cached_property(Generic[S, T]):  # noqa: N801  # a decorator, named as the one that it replaces
    """Makes an attribute of a method without arguments, of a class whose instances have a `__dict__`."""

    def __init__(self, compute: Callable[[S], T]) -> None:
        """Compute it with this method."""
        self._compute = compute
        self.__doc__ = compute.__doc__
        self._name = ""

    def __set_name__(self, owner: type[Any], name: str) -> None:
        """Keep it under this name: Python looks there first from then on."""
        self._name = name

    def __get__(self, instance: S, owner: type[Any] | None = None) -> T:
        """Compute it."""
        value = self._compute(instance)
        instance.__dict__[self._name] = value
        return value
