"""Tests of the waits of the second client that count as violations, with a simulated client."""

from __future__ import annotations

import time
from collections import deque

from tests.robustness.attack.inputs import Input
from tests.robustness.attack.judges.second_client import GET, WRITE, Measurement
from tests.robustness.attack.judges.waits import QUIET, SLOWEST, TRIES, WaitJudge

_CAUSE = Input("lists", "POST", "/cause", {})
_OTHER = Input("page", "GET", "/other", {})


def _look(waited: float, what: str = GET) -> Measurement:
    return Measurement(what, waited, 0.0, 0.0, time.monotonic())


_QUICK = _look(0.01)
_LONG = SLOWEST[GET] + 0.1
_USUAL = {what: _look(QUIET[what], what) for what in (GET, WRITE)}


class _Client:
    """A simulated second client, which reports a long wait after each of the first `times` times
    that `_CAUSE` is sent.
    """

    def __init__(self, times: int) -> None:
        self.sent: list[Input] = []
        self._times = times
        self.looks: deque[Measurement] = deque()

    def send(self, given: Input) -> None:
        self.sent.append(given)
        if given is _CAUSE and self._times:
            self._times -= 1
            self.looks.append(_look(_LONG))

    def next_look(self, timeout: float) -> Measurement | None:
        if self.looks:
            return self.looks.popleft()
        return _QUICK if timeout else None


def _judged(client: _Client, *inputs: Input, waited: float = _LONG) -> WaitJudge:
    """Return the judge after several inputs, the last of which caused a long wait."""
    waits = WaitJudge(_USUAL, client.send, client.next_look)
    for each in inputs:
        waits.ask(each)
    client.looks.append(_look(waited))
    waits.judge()
    return waits


def test_a_delay_counts_if_its_inputs_reproduce_it() -> None:
    client = _Client(TRIES)
    waits = _judged(client, _OTHER, _CAUSE)
    assert client.sent == [_OTHER, _CAUSE] * TRIES
    assert len(waits.complaints) == 1
    assert "/cause" in waits.complaints[0]
    assert "page" in waits.complaints[0]


def test_a_delay_that_is_not_reproducible_is_the_machines() -> None:
    waits = _judged(_Client(TRIES - 1), _CAUSE)
    assert not waits.complaints
    assert waits.passing == 1


def test_short_delays_are_not_reproduced() -> None:
    client = _Client(0)
    waits = _judged(client, _CAUSE, waited=SLOWEST[GET])
    assert (client.sent, waits.complaints, waits.passing) == ([], [], 0)


def test_readings_after_the_last_input_are_judged() -> None:
    client = _Client(1 + TRIES)
    waits = WaitJudge(_USUAL, client.send, client.next_look)
    waits.ask(_CAUSE)
    client.send(_CAUSE)
    waits.judge_last()
    assert len(waits.complaints) == 1


def test_delays_are_relative_to_an_idle_slow_server() -> None:
    waits = WaitJudge({GET: _look(QUIET[GET] * 3), WRITE: _look(0.0, WRITE)}, print, lambda timeout: None)
    assert waits.allowed == {GET: SLOWEST[GET] * 3, WRITE: SLOWEST[WRITE]}
