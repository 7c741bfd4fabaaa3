"""What a container's id remembers: since when it has lived by what it is told now.

A pod's life is worked out from its beginning each time. That it was told something else in the middle (another image,
another annotation) must not change what has been; so the id, which others take for any 64 digits, says from where on to
work it out, and for which telling.

Guarantees: pure functions; an id that is not one of these is None.
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
    """Return 64 hexadecimal digits that stand for these texts."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


class Memory(NamedTuple):
    """Times in seconds of the pod's life."""

    recipe: str
    """Stands for what the container is told: its image and its behaviour."""
    first: float
    """When the first run began that was told so."""
    restarts: int = 0
    """How often it had been restarted by then."""
    told: float = 0.0
    """So many seconds after its beginning that run was told so."""
    current: float = 0.0
    """When the run began that the id is of."""

    def identify(self, identity: str) -> str:
        """Return an id that remembers this; `identity` is a digest that tells it from others."""
        times = "".join(
            f"{min(round(each * 1000), _LARGEST):0{_TIME}x}" for each in (self.first, self.told, self.current)
        )
        said = f"{self.recipe}{min(self.restarts, 16**_COUNT - 1):0{_COUNT}x}{times}"
        return f"{_SCHEME}{identity[: _DIGITS - len(said)]}{said}"


def remembered(container_id: str) -> Memory | None:
    """Read an id."""
    text = container_id.removeprefix(_SCHEME)
    if text == container_id or len(text) != _DIGITS:
        return None
    at = _DIGITS - _RECIPE - _COUNT - 3 * _TIME
    recipe, text = text[at : at + _RECIPE], text[at + _RECIPE :]
    try:
        restarts = int(text[:_COUNT], 16)
        first, told, current = (int(text[at : at + _TIME], 16) / 1000 for at in range(_COUNT, len(text), _TIME))
    except ValueError:
        return None
    return Memory(recipe, first, restarts, told, current)


def recipe_of(container: Mapping[str, Any], behaviour: Behaviour) -> str:
    """Return what stands for what a container is told; how long its image takes matters only before it runs."""
    return digest(container.get("image", ""), repr(behaviour._replace(pull_takes=None)))[:_RECIPE]
