"""Runs the leader election of a process: the process is a candidate, and runs its controllers while it leads.

Guarantees:
- The leader's runnables start after the caches have reached the revision of the takeover. Therefore the leader's
  runnables observe all writes of earlier leaders, and never act on an older state.
- When the term ends for any reason, the election stops the leader's runnables at once. After all controllers have
  finished, the process is a candidate again. Runnables that do not depend on leadership continue.
- When the process stops, all controllers finish first, while the lease is still renewed. The lease is released only
  after all controllers have finished.
- A change of the lease wakes a candidate, so that the candidate takes over a released lease within milliseconds.
- `run` raises every error of a term except the loss of leadership; such an error ends the process.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Final, Protocol

import structlog

from ctrlmgr import threads
from ctrlmgr.api.object import Object
from ctrlmgr.clock import Clock
from ctrlmgr.errors import Fenced
from ctrlmgr.informer import Change, Informer
from ctrlmgr.leaderelection.elector import Elector
from ctrlmgr.manager import Manager, Phase, Runnable
from ctrlmgr.metrics import leader_election_status

log = structlog.get_logger(__name__)

GRACE: Final = 25.0
"""The seconds within which the leader's runnables must stop; the whole process has more time to stop."""
RELEASE_PATIENCE: Final = 2.0
"""The maximum number of seconds for releasing the lease."""

Announce = Callable[[Object, str], None]


class StandbyController(Protocol):
    """A controller that reconciles only in the leader's process, but receives changes in every process."""

    def stand_by(self) -> None:
        """Drop all changes from now on, because another process has become the leader."""

    def resume(self) -> None:
        """Receive changes again, beginning with all existing objects; the informers' thread calls this method."""


class _TermRunnable:
    """A runnable that runs for one term.

    If the fence refuses a write of the runnable, the term ends, and the process continues.
    """

    def __init__(self, runnable: Runnable, fenced: Callable[[Fenced], None]) -> None:
        self.name = runnable.name
        self._runnable = runnable
        self._fenced = fenced

    def run(self, stop: threading.Event) -> None:
        try:
            self._runnable.run(stop)
        except Fenced as error:
            self._fenced(error)


class _Running:
    """Runs each runnable of one term on a separate thread."""

    def __init__(self, term: int, runnables: Sequence[Runnable], *, clock: Clock, ended: Callable[[], None]) -> None:
        """Start the runnables of the term; the last runnable to end calls `ended`."""
        self.term = term
        self.stop = threading.Event()
        self.has_ended = False
        self.fenced: Fenced | None = None
        """The error of a write that the fence refused; None if no write was refused."""
        self.error: BaseException | None = None
        """Any other error of a runnable; None if there was no other error."""
        manager = Manager(clock=clock, grace=GRACE)
        for runnable in runnables:
            manager.add(_TermRunnable(runnable, self._on_fenced), Phase.LEADER)

        def run() -> None:
            try:
                manager.run(self.stop)
            except BaseException as error:  # The election's thread checks this error.
                self.error = error
            finally:
                self.has_ended = True
                ended()

        threads.start(f"term {term}", run)

    def _on_fenced(self, error: Fenced) -> None:
        self.fenced = error
        self.stop.set()


class Election:
    """The leader election in this process.

    The instance must be created before the informers sync, so that it observes all changes.
    """

    name = "leader-election"

    def __init__(
        self,
        elector: Elector,
        leases: Informer,
        runnables: Sequence[Runnable],
        controllers: Sequence[StandbyController],
        *,
        clock: Clock,
        announce: Announce = lambda lease, message: None,
        warn: Announce = lambda lease, message: None,
    ) -> None:
        """Run `runnables`, which include the `controllers`, while `elector` leads.

        `leases` is the informer of the lease. The election calls `announce` with the lease and a message when
        leadership begins or ends. The election calls `warn` when the lease's holder is not a process of this control
        plane.
        """
        self._elector = elector
        self._runnables = runnables
        self._controllers = controllers
        self._clock = clock
        self._announce = announce
        self._warn = warn
        self._stranger = ""  # The holder about which the last warning was logged.
        self._status = leader_election_status(elector.key.name)
        self._running: _Running | None = None
        self._announced = 0
        # Guards the attributes below; notified when `run` must check them again.
        self._changed = threading.Condition()
        self._woken = False
        self._resumed = 0  # This process's newest term whose takeover the caches have reached.
        self._stood = 0  # The newest of these terms that has ended.
        self._acting = False
        for controller in controllers:
            controller.stand_by()
        leases.add_handler(self._on_lease, vital=True)

    def is_leading(self) -> bool:
        """Return whether the leader's runnables run in this process and have not been stopped."""
        return self._acting

    def problem(self) -> str | None:
        """Return None if this process leads and its controllers run, or if this process knows another leader.

        Otherwise return a description of the problem of this process.
        """
        if stranger := self._elector.foreign_holder():
            return f"the lease is held by {stranger}, which is not a process of this control plane"
        if self._acting or (self._elector.has_seen_leader() and not self._elector.term):
            return None
        return "this process has not seen a leader yet"

    def _on_lease(self, change: Change) -> None:
        """Receive a change of a lease, on the informers' thread."""
        if change.object.key != self._elector.key:
            return
        term = self._elector.observe(change.new, change.revision)
        if term > self._resumed and self._running is None:
            for controller in self._controllers:
                controller.resume()
            self._resumed = term
        self._wake()

    def _wake(self) -> None:
        with self._changed:
            self._woken = True
            self._changed.notify_all()

    def run(self, stop: threading.Event) -> None:
        """Take part in the election until `stop` is set; raises the errors of the leader's runnables."""

        def wake_at_the_end() -> None:
            stop.wait()
            self._wake()

        threads.start("leader-election-stop", wake_at_the_end)
        try:
            while not self._is_over(stop):
                wait_until = self._elector.step() if self._stands(stop) else float("inf")
                self._follow(stop)
                self._wait(wait_until)
        finally:
            stop.set()
            if self._running is not None:
                self._running.stop.set()
        self._leave()

    def _stands(self, stop: threading.Event) -> bool:
        """Return whether the elector may take its next step.

        The elector of a leader continues until all controllers have finished. No term begins while the process stops.
        """
        return self._elector.term > 0 or not stop.is_set()

    def _is_over(self, stop: threading.Event) -> bool:
        return stop.is_set() and self._running is None

    def _follow(self, stop: threading.Event) -> None:
        """Start the leader's runnables if the elector leads, and stop the runnables if the elector does not lead."""
        term = self._elector.term
        self._tell(term)
        self._tell_of_stranger()
        running = self._running
        if running is None:
            if not term:
                self._stand_by()
            elif not stop.is_set() and term == self._resumed:
                self._acting = True  # The attribute is set before any controller can write.
                self._running = _Running(term, self._runnables, clock=self._clock, ended=self._wake)
            return
        if running.has_ended:
            self._end(running)
        elif running.term != term or stop.is_set():
            self._acting = False
            running.stop.set()

    def _end(self, running: _Running) -> None:
        """Handle the end of a term, after all runnables of the term have ended."""
        self._running = None
        self._acting = False
        if running.error is not None:
            raise running.error
        if running.fenced is not None:
            self._elector.step_down(str(running.fenced))
        self._wake()

    def _stand_by(self) -> None:
        """Record that no controller runs, and tell the controllers to drop changes."""
        if self._elector.ended():
            self._wake()  # This process may become a candidate again.
        if self._resumed > self._stood:
            self._stood = self._resumed
            for controller in self._controllers:
                controller.stand_by()

    def _tell(self, term: int) -> None:
        """Announce that leadership has begun or ended."""
        if term == self._announced:
            return
        lease, identity = self._elector.lease, self._elector.identity
        if self._announced:
            self._status.set(0)
            if lease is not None:
                self._announce(lease, f"{identity} stopped leading")
        if term:
            self._status.set(1)
            if lease is not None:
                self._announce(lease, f"{identity} became leader")
        self._announced = term

    def _tell_of_stranger(self) -> None:
        """Log one warning if a process that does not belong to this control plane holds the lease."""
        stranger = self._elector.foreign_holder()
        if stranger and stranger != self._stranger and (lease := self._elector.lease) is not None:
            self._warn(lease, f"{stranger} holds the lease and is not a process of this control plane")
        self._stranger = stranger

    def _wait(self, until: float) -> None:
        with self._changed:
            while not self._woken:
                left = until - self._clock.monotonic()
                if left <= 0:
                    break
                self._clock.wait(self._changed, None if left == float("inf") else left)
            self._woken = False

    def _leave(self) -> None:
        """Release the lease, after all controllers have finished."""
        self._elector.ended()
        self._elector.release(RELEASE_PATIENCE)
        self._tell(0)
