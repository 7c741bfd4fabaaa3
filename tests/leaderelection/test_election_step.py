"""Tests of the next step of an elector, written as a table."""

from __future__ import annotations

import pytest

from ctrlmgr.errors import SettingsError
from ctrlmgr.leaderelection import Timing
from ctrlmgr.leaderelection.election_step import Decision, Observed, Renew, StepDown, TakeOver, Term, Wait, decide
from ctrlmgr.leaderelection.lease_record import ObservedRecord

ME, OTHER = "me", "other"
TIMING = Timing(15, 10, 2)


def seen(holder: str, *, at: float, duration: float = 15, gone: bool = False) -> Observed:
    return Observed(ObservedRecord(holder, 7, duration, "whenever", ""), at, gone)


@pytest.mark.parametrize(
    ("observed", "now", "expected"),
    [
        pytest.param(None, 0, TakeOver(0), id="nobody ever held it"),
        pytest.param(seen("", at=100), 100, TakeOver(7), id="it was given back"),
        pytest.param(seen(OTHER, at=100), 100, Wait(115), id="somebody holds it"),
        pytest.param(seen(OTHER, at=100), 114.9, Wait(115), id="they may still hold it"),
        pytest.param(seen(OTHER, at=100), 115, TakeOver(7), id="it stood still for as long as it is good for"),
        pytest.param(seen(OTHER, at=100, duration=40), 115, Wait(140), id="the holder says for how long"),
        pytest.param(seen(OTHER, at=100, gone=True), 100, TakeOver(7), id="the holder is known to be gone"),
        pytest.param(seen(ME, at=100), 100, TakeOver(7), id="we held it and stepped down, or never learned of it"),
    ],
)
def test_a_candidate_decides_its_step(observed: Observed | None, now: float, expected: Decision) -> None:
    assert decide(observed, None, identity=ME, now=now, timing=TIMING) == expected


@pytest.mark.parametrize(
    ("observed", "now", "expected"),
    [
        pytest.param(seen(ME, at=100), 101, Wait(102), id="until it is to be renewed"),
        pytest.param(seen(ME, at=100), 102, Renew(), id="then it is"),
        pytest.param(seen(ME, at=100), 109.9, Renew(), id="again and again"),
        pytest.param(seen(ME, at=100), 110, StepDown("the lease could not be renewed for 10 s"), id="and no longer"),
        pytest.param(seen(ME, at=109), 110, StepDown("the lease could not be renewed for 10 s"), id="whoever saw what"),
        pytest.param(seen(OTHER, at=100), 101, StepDown("other holds the lease"), id="somebody took it"),
        pytest.param(None, 102, Renew(), id="somebody deleted it: the term is still ours"),
        pytest.param(seen("", at=101), 102, Renew(), id="somebody emptied it"),
    ],
)
def test_a_leader_decides_its_step(observed: Observed | None, now: float, expected: Decision) -> None:
    assert decide(observed, Term(7, 100, 0), identity=ME, now=now, timing=TIMING) == expected


@pytest.mark.parametrize(
    ("timing", "said"),
    [
        (Timing(10, 10, 2), "lease_duration must be greater"),
        (Timing(15, 2.4, 2), "must be greater than 1.2 times"),
        (Timing(15, 10, 0), "retry_period must be greater than zero"),
        (Timing(0.5, 0.4, 0.1), "at least one"),
        (Timing(1.5, 1, 0.5), "whole seconds"),
    ],
)
def test_inconsistent_durations_are_refused(timing: Timing, said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        timing.check()
    TIMING.check()
