"""Property tests of electors on one log; for each safeguard, an elector without it violates an invariant."""

from __future__ import annotations

from contextlib import suppress

import pytest

from ctrlmgr.leaderelection import Elector, Timing
from ctrlmgr.leaderelection.election_step import Term
from ctrlmgr.leaderelection.elector import _ObservedLease
from tests.leaderelection.simulation import HistoryExhausted, PathChooser, RandomChooser, SimulatedProcesses, Variant

SEEDS = range(250)
ACTIONS = 200


class TrustsItselfTooLong(Elector):
    """A broken elector, which leads until it reads a Lease with a newer term."""

    def _trusted_until(self, term: Term) -> float:
        return float("inf")


class ReleasesAtOnce(Elector):
    """A broken elector, which releases the Lease while workers run."""

    def release(self, patience: float) -> None:
        self._at_work = False
        super().release(patience)


class DoesNotWaitForTheEnd(Elector):
    """A broken elector, which begins a term while workers of the previous term run."""

    def step(self) -> float:
        self._at_work = False
        return super().step()


class TakesWhatIsThereNow(Elector):
    """A broken elector, which takes over the newest Lease that it has read instead of the Lease that it found expired
    or released.
    """

    def _take_over(self, after: int, seen: _ObservedLease, now: float) -> float:
        return super()._take_over(after, self._seen, now)


FOR_EVER = Timing(renew_deadline=1e9)


@pytest.mark.parametrize("processes", [2, 3, 5])
def test_every_history_keeps_the_guarantees_and_ends_with_a_leader(processes: int) -> None:
    terms = 0
    for seed in SEEDS:
        world = SimulatedProcesses(RandomChooser(seed), processes=processes)
        world.run(ACTIONS)
        assert world.violations() == [], f"seed {seed}"
        assert world.heal(), f"nobody leads after seed {seed}"
        assert world.violations() == [], f"healed, seed {seed}"
        terms += world.processes[-1].elector.term
    assert terms > 4 * len(SEEDS), "hardly anybody ever took over from anybody"


@pytest.mark.slow
def test_every_short_history_keeps_the_guarantees() -> None:
    """Run all histories with up to this number of choices; each begins in a state in which one
    process leads and works.
    """
    path: list[int] | None = []
    histories = 0
    while path is not None:
        chooser = PathChooser(path, depth=6)
        world = SimulatedProcesses(chooser, depth=1)
        _lead(world)
        with suppress(HistoryExhausted):
            world.run(20)
        assert world.violations() == [], path
        histories += 1
        path = chooser.next()
    assert histories > 1000


def _lead(world: SimulatedProcesses) -> None:
    """Let the first process lead and begin to work, without any random choices."""
    around = world.log.around
    world.log.around = world.sessions.around = lambda: None
    first, second = world.processes
    first.step()
    for process in (first, second):
        process.hear()
    first.begin()
    world.log.around = world.sessions.around = around


@pytest.mark.parametrize(
    ("variant", "said"),
    [
        pytest.param(Variant(unfenced=True), "wrote at", id="checked without the lock"),
        pytest.param(Variant(ReleasesAtOnce, drains=False), "having given the lease back", id="released before drain"),
        pytest.param(Variant(TrustsItselfTooLong, FOR_EVER), "began to work", id="trusted past the deadline"),
        pytest.param(Variant(DoesNotWaitForTheEnd, pinned=False), "wrote at", id="a term begun among old workers"),
        pytest.param(Variant(TakesWhatIsThereNow), "lived and led", id="a takeover that is not conditional"),
    ],
)
def test_a_removed_safeguard_violates_a_guarantee(variant: Variant, said: str) -> None:
    for seed in SEEDS:
        world = SimulatedProcesses(RandomChooser(seed), variant)
        world.run(ACTIONS)
        if any(said in each for each in world.violations()):
            return
    pytest.fail(f"{len(SEEDS)} histories did not show it")
