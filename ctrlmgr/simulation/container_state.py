"""Stores in a container's id the time from which on the container's current behaviour applies.

Each call of the simulation computes a pod's lifecycle from its beginning. A change of the behaviour (another image or
annotation) must not change the past of a container. Therefore the container id contains the time from which on the
lifecycle is computed, and a digest of the behaviour. Like the ids of real container runtimes, it has 64 hexadecimal
digits.

Guarantees: all functions are pure; a container id of any other form is decoded as None.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from ctrlmgr.simulation.behaviour import Behaviour

_SCHEME: Final = "simulated://"
_DIGITS: Final = 64
_RECIPE, _TIME, _COUNT = 8, 11, 6
_LARGEST: Final = 16**_TIME - 1


def digest(*parts: str) -> str:
    """Return a digest of these strings as 64 hexadecimal digits."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


class Memory(NamedTuple):
    """The contents of a container id; times are in seconds of the pod's life."""

    recipe: str
    """A digest of the container's image and behaviour."""
    first: float
    """The start of the first run with this behaviour."""
    restarts: int = 0
    """The number of restarts of the container before that run."""
    told: float = 0.0
    """The seconds after the start of that run at which the behaviour changed to the current one."""
    current: float = 0.0
    """The start of the run to which the id belongs."""

    def identify(self, identity: str) -> str:
        """Return a container id with these contents; `identity` is a digest that makes the id unique."""
        times = "".join(
            f"{min(round(each * 1000), _LARGEST):0{_TIME}x}" for each in (self.first, self.told, self.current)
        )
        encoded = f"{self.recipe}{min(self.restarts, 16**_COUNT - 1):0{_COUNT}x}{times}"
        return f"{_SCHEME}{identity[: _DIGITS - len(encoded)]}{encoded}"


def remembered(container_id: str) -> Memory | None:
    """Return the contents of a container id; None for an id of any other form."""
    text = container_id.removeprefix(_SCHEME)
    if text == container_id or len(text) != _DIGITS:
        return None
    at = _DIGITS - _RECIPE - _COUNT - 3 * _TIME
    recipe, text = text[at : at + _RECIPE], text[at + _RECIPE :]
    try:
        restarts = int(text[:_COUNT], 16)
        first, logged, current = (int(text[at : at + _TIME], 16) / 1000 for at in range(_COUNT, len(text), _TIME))
    except ValueError:
        return None
    return Memory(recipe, first, restarts, logged, current)


def recipe_of(container: Mapping[str, Any], behaviour: Behaviour) -> str:
    """Return a digest of a container's image and behaviour.

    The duration of the image pull is part of the digest only before the container runs.
    """
    return digest(container.get("image", ""), repr(behaviour._replace(pull_takes=None)))[:_RECIPE]
