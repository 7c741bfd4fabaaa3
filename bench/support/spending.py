"""What a request costs a server: the processor time of its process, compared in short turns.

It is what a request takes from the others, and other loads on the machine do not change it as they change a rate. They
do change it: who shares the processor's caches makes the same work take half as long again. They only ever add, so of
many short turns the quicker half is compared: their mean differs half as much from one run to the next as the quickest
turn does.
"""

from __future__ import annotations

import time
from statistics import fmean
from typing import NamedTuple

from bench.support.https_load import Load, measure
from bench.support.served import CLIENT_CORE, Served, on_core

CLIENTS = 16
SECONDS = 0.6
AFTER = 0.3
"""Seconds after which what a turn has left to be done is done."""
ROUNDS = 16


class Asking(NamedTuple):
    """Requests of one kind to one server."""

    served: Served
    request: str
    expect: int = 200

    def spent(self) -> tuple[float, int]:
        """Return the seconds of processor time that requests take in a while, and how many they were."""
        before = self.served.spent()
        with on_core(CLIENT_CORE):
            served = self.served
            load = Load(
                served.host, served.port, served.authority, CLIENTS, SECONDS, [self.request], 0.0, expect=self.expect
            )
            measured = measure(load)
        time.sleep(AFTER)
        return self.served.spent() - before, measured.all_answers


class Turns:
    """What requests have taken in the turns so far."""

    def __init__(self) -> None:
        """Begin with none."""
        self._each: list[float] = []

    def add(self, asking: Asking) -> None:
        """Take a turn."""
        seconds, answers = asking.spent()
        self._each.append(1e6 * seconds / answers)

    @property
    def undisturbed(self) -> float:
        """Microseconds that a request took in the turns that were disturbed least, the quicker half of all."""
        return fmean(sorted(self._each)[: (len(self._each) + 1) // 2])


def in_turns(one: Asking, other: Asking, rounds: int = ROUNDS) -> tuple[float, float]:
    """Return the microseconds of processor time that a request of either kind takes."""
    ours, theirs = Turns(), Turns()
    for number in range(rounds):
        turns = [(ours, one), (theirs, other)]
        for taken, asking in turns if number % 2 else reversed(turns):
            taken.add(asking)
    return ours.undisturbed, theirs.undisturbed
