"""Encodes in a container's id the time since which the container has its current behaviour.

Each call of the simulation computes a pod's lifecycle from its beginning. If the behaviour changes (for example, the
image or an annotation), the past of the container must not change. Therefore the container id contains the time from
which the lifecycle is computed with this behaviour, and a digest of the behaviour. Like the ids of real container
runtimes, the id has 64 hexadecimal digits.

Guarantees: all functions are pure. If a container id has another form, the result of decoding it is None.
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
    """The content of a container id; times are in seconds of the pod's life."""

    recipe: str
    """A digest of the container's image and behaviour."""
    first: float
    """The start of the first run that has this behaviour."""
    restarts: int = 0
    """The number of restarts of the container before that run."""
    told: float = 0.0
    """The time at which the current behaviour began, in seconds after the start of the first run with this behaviour.
    """
    current: float = 0.0
    """The start of the run that has this container id."""

    def identify(self, identity: str) -> str:
        """Return a container id with this content; `identity` is a digest that makes the id unique."""
        times = "".join(
            f"{min(round(each * 1000), _LARGEST):0{_TIME}x}" for each in (self.first, self.told, self.current)
        )
        encoded = f"{self.recipe}{min(self.restarts, 16**_COUNT - 1):0{_COUNT}x}{times}"
        return f"{_SCHEME}{identity[: _DIGITS - len(encoded)]}{encoded}"


def remembered(container_id: str) -> Memory | None:
    """Return the content of a container id; None if the id has another form."""
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

    The digest includes the duration of the image pull only if the container has not run yet.
    """
    return digest(container.get("image", ""), repr(behaviour._replace(pull_takes=None)))[:_RECIPE]
