"""Measures the cost of a request for a server: the processor time of the server's process, compared in short turns.

Other load on the machine affects processor time less than it affects a rate. The effect on processor time can still be
large: while other processes use the processor's caches, the same work can take 50 % longer, for seconds or minutes.
Therefore both kinds of requests alternate in short turns, and each turn is compared with the neighbouring turn of the
other kind.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from statistics import fmean
from typing import NamedTuple

from bench.support.https_load import Load, measure
from bench.support.served import CLIENT_CORE, Served, on_core
from bench.support.slices import Contest, Side, slices

CLIENTS = 16
SECONDS = 0.6
AFTER = 0.3
"""Seconds after which the server has finished the remaining work of a turn."""
SLICE = 0.15
TURNS = 100


class RequestSeries(NamedTuple):
    """Requests of one kind, which are sent to one server."""

    served: Served
    request: str
    expect: int = 200

    def spent(self) -> tuple[float, int]:
        """Return the seconds of processor time that the server needs for requests in a period, and their number."""
        before = self.served.spent()
        with on_core(CLIENT_CORE):
            measured = measure(_load(self, SECONDS))
        time.sleep(AFTER)
        return self.served.spent() - before, measured.all_answers


def in_turns(one: RequestSeries, other: RequestSeries, turns: int = TURNS) -> tuple[float, float]:
    """Return the microseconds of processor time per request, for each of the two kinds.

    The results are based on the mean of the middle half of the turns: of the second kind's times, and of the ratios
    between the two kinds within each turn.
    """
    with on_core(CLIENT_CORE):
        taken = slices(Contest(_side(one), _side(other), turns))
    theirs = _middle([each.other for each in taken])
    return theirs * _middle([each.one / each.other for each in taken]), theirs


def _side(asking: RequestSeries) -> Side:
    return Side(_load(asking, SLICE), asking.served.process)


def _load(asking: RequestSeries, seconds: float) -> Load:
    served = asking.served
    return Load(
        served.host, served.port, served.authority, CLIENTS, seconds, [asking.request], 0.0, expect=asking.expect
    )


def _middle(values: Sequence[float]) -> float:
    """Return the mean of the middle half of `values`, sorted."""
    quarter = len(values) // 4
    return fmean(sorted(values)[quarter : len(values) - quarter])
