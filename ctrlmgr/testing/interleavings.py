"""Every order in which clients' changes, the caches' hearing of them and reconciles may follow one another.

Guarantees: none is left out and none comes twice; each is run from the beginning, in a harness of its own, so that one
that goes wrong can be run again by itself. What comes after the last change is run in one order: the harness's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from ctrlmgr.testing.harness import Harness

CHANGE: Final = "change"
HEAR: Final = "hear"


def every_interleaving(
    make: Callable[[], Harness], changes: Sequence[Callable[[Harness], object]], *, most: int = 2_000
) -> Iterator[tuple[Harness, Sequence[str]]]:
    """Yield a harness at rest for each order, and the order: `change`, `hear` (one event), or a controller's name.

    `make` makes the harness in which all begin; `changes` are what clients do, in their order. Raises AssertionError
    when there are more than `most` orders: then take fewer changes.
    """
    path: list[int] = []
    for _ in range(most):
        harness, order, choices = _run(make, changes, path)
        yield harness, order
        while choices and path[len(choices) - 1] + 1 == choices[-1]:
            choices.pop()
        if not choices:
            return
        path = [*path[: len(choices) - 1], path[len(choices) - 1] + 1]
    raise AssertionError(f"there are more than {most} orders: interleave fewer changes, or raise most=")


def _run(
    make: Callable[[], Harness], changes: Sequence[Callable[[Harness], object]], path: list[int]
) -> tuple[Harness, Sequence[str], list[int]]:
    """Run one order: `path` says what to take at each choice, and grows by zeros where it ends.

    Returns the harness, the order, and how much there was to choose from at each choice.
    """
    harness = make()
    left = list(changes)
    order: list[str] = []
    choices: list[int] = []
    while left:
        options = [CHANGE, *([HEAR] if harness.unheard else ()), *harness.ready()]
        if len(path) == len(choices):
            path.append(0)
        taken = options[path[len(choices)]]
        choices.append(len(options))
        order.append(taken)
        if taken == CHANGE:
            left.pop(0)(harness)
        elif taken == HEAR:
            harness.hear(1)
        else:
            harness.work(taken)
    harness.settle()
    return harness, order, choices
