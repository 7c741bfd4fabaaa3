"""Runs every interleaving of clients' changes, updates of the caches, and reconciles.

Guarantees: each interleaving runs exactly once, from the beginning, in its own harness, so that a failing interleaving
can be repeated alone. After the last change, the controllers run in the order of the harness.
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
    """For each possible order of steps, run the steps in a harness; yield the idle harness and the order.

    The steps in an order are `change`, `hear` (the caches apply one event), or the name of a controller. `make` creates
    the initial harness, and `changes` are the clients' actions in their order. Raises AssertionError if there are more
    than `most` orders; the test must then use fewer changes.
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
    """Run one order. `path` contains the index of the choice at each step; missing indexes are added as zeros.

    Return the harness, the order, and the number of options at each step.
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
