"""Simulates electors on one log and one clock; a chooser decides which event happens next.

Each simulated process runs the real `Elector`, with workers that write as controllers do. Whenever a process calls the
log or checks a session, other processes may act first, or time may pass, as if the process had been frozen at that
instruction. `violations` checks the invariants of the election on the log. Further checks run at each takeover and
whenever a reconcile begins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import NamedTuple, Protocol

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import LEASES, Key
from ctrlmgr.errors import Fenced
from ctrlmgr.eventlog import Author, Cause, Event, EventType, Fence, Proposal
from ctrlmgr.eventlog.appending.pending import PendingAppend
from ctrlmgr.eventlog.memory_log import MemoryEventLog
from ctrlmgr.leaderelection import Elector, LeaseLock, Timing
from ctrlmgr.leaderelection.lease_record import held
from ctrlmgr.testing import FakeClock

KEY = Key("kube-system", "ctrlmgr")
TIMING = Timing()
STEPS = (0.5, 0.5, 2.0, 2.0, 9.0, 16.0)
"""The numbers of seconds that may pass at once: less than a renewal period, one period, less than the deadline, more
than the lease duration.
"""


class Chooser(Protocol):
    """A chooser, which decides which event happens next."""

    def choose(self, options: int) -> int:
        """Return a number from 0 to `options` - 1."""


class RandomChooser:
    """A chooser that draws random numbers from a seed."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)

    def choose(self, options: int) -> int:
        return self._random.randrange(options)


class HistoryExhausted(Exception):  # raised to end a history, not as an error
    """Raised when a history has reached its maximum length."""


class PathChooser:
    """A chooser that follows a path of choices, and then always takes the first option.

    `next` is the path of choices that follows in a depth-first walk.
    """

    def __init__(self, path: Sequence[int], depth: int) -> None:
        self._path = path
        self._depth = depth
        self.taken: list[tuple[int, int]] = []

    def choose(self, options: int) -> int:
        if len(self.taken) >= self._depth:
            raise HistoryExhausted
        at = len(self.taken)
        chosen = self._path[at] if at < len(self._path) else 0
        self.taken.append((chosen, options))
        return chosen

    def next(self) -> list[int] | None:
        path = list(self.taken)
        while path:
            chosen, options = path.pop()
            if chosen + 1 < options:
                return [number for number, _ in path] + [chosen + 1]
        return None


class MachineClock:
    """The clocks of one machine, which differ from the clocks of other machines."""

    def __init__(self, shared: FakeClock, offset: float) -> None:
        self._shared = shared
        self._offset = offset
        self.wait = shared.wait

    def now(self) -> int:
        return self._shared.now() + round(self._offset * 1_000_000)

    def monotonic(self) -> float:
        return self._shared.monotonic() + abs(self._offset) * 1000


class SharedLog(MemoryEventLog):
    """The event log as one process uses it; it calls `before` and `after` around each append."""

    around: Callable[[], None] = staticmethod(lambda: None)
    wrote_lease: Callable[[Object | None, Object], None] = staticmethod(lambda before, after: None)

    def submit(
        self, proposals: Sequence[Proposal], *, author: Author, fence: Fence | None = None, cause: Cause | None = None
    ) -> PendingAppend:
        self.around()
        before = self.get(LEASES, KEY)
        pending = super().submit(proposals, author=author, fence=fence, cause=cause)
        after = self.get(LEASES, KEY)
        if after is not None and after != before:
            self.wrote_lease(before, after)
        self.around()
        return pending


class Sessions:
    """Sessions that end when their processes end, and that running processes sometimes lose."""

    look_again = 0.25
    may_be_lost = True
    around: Callable[[], None] = staticmethod(lambda: None)

    def __init__(self) -> None:
        self.ended: set[str] = set()
        self.lost: set[str] = set()
        """Sessions that ended after their holder last wrote the Lease, including sessions that the holder has acquired
        again.
        """

    def name(self, identity: str) -> str:
        return f"simulated:{identity}"

    def end(self, identity: str) -> None:
        self.ended.add(self.name(identity))
        self.lost.add(self.name(identity))

    def hold(self, identity: str) -> str:
        self.around()
        self.ended.discard(self.name(identity))
        return self.name(identity)

    def has_ended(self, session: str) -> bool:
        has_ended = session in self.ended
        self.around()
        return has_ended

    def close(self) -> None:
        """Do nothing, because the simulation opens no resources."""


class Work(NamedTuple):
    """A running reconcile: the term in which it began, and the term with which it writes."""

    term: int
    fence: Fence


class Variant(NamedTuple):
    """The class of the simulated processes; each broken variant differs in one method."""

    elector: type[Elector] = Elector
    timing: Timing = TIMING
    drains: bool = True
    unfenced: bool = False
    pinned: bool = True


class Process:
    """A process with one candidate and up to two running reconciles."""

    def __init__(self, world: SimulatedProcesses, name: str, offset: float) -> None:
        self.name = name
        self.world = world
        self.clock = MachineClock(world.clock, offset)
        uid = f"uid-{name}"
        lock = LeaseLock(world.log, KEY, identity=name, author=Author(name), clock=self.clock, new_uid=lambda: uid)
        self.elector = world.variant.elector(lock, world.sessions, world.variant.timing, clock=self.clock)
        self.seen = 0
        self.work: list[Work] = []
        self.dead = self.frozen = self.leaving = False
        self.caught_up = 0

    @property
    def can_act(self) -> bool:
        return not self.dead and not self.frozen

    def hear(self) -> None:
        """Receive events of the log, as from the informers."""
        for event in self.world.log.events_after(self.seen):
            self.seen = event.revision
            if event.resource == LEASES:
                lease = None if event.type is EventType.DELETED else event.object
                self.caught_up = self.elector.observe(lease, event.revision) or self.caught_up

    def step(self) -> None:
        if self.leaving and not self.elector.term:
            return
        self.elector.step()
        self.drain()

    def drain(self) -> None:
        """Act like `Election` after the end of a term, when none of its runnables runs any more."""
        drained = not self.work or not self.world.variant.drains
        if drained and not self.elector.term:
            self.elector.ended()
        if self.leaving and drained and self.elector.term:
            self.elector.ended()
            self.elector.release(1.0)

    def begin(self) -> None:
        """Begin a reconcile if the process leads and its caches contain the write with which it took over the Lease."""
        if self.leaving or not self.elector.term or self.caught_up != self.elector.term or len(self.work) == 2:
            return
        try:
            fence = self.elector.fence()
        except Fenced:
            self.elector.step_down("fenced")
            return
        self.world.begins(self, fence)
        self.work.append(Work(fence.term, fence))

    def write(self) -> None:
        """Let the oldest reconcile make one write and end."""
        if not self.work:
            return
        work = self.work.pop(0)
        try:
            fence = work.fence if self.world.variant.pinned else self.elector.fence()
            self.world.write(self, work.term, fence)
        except Fenced:
            self.elector.step_down("fenced")
        self.drain()


class SimulatedProcesses:
    """A set of processes, their shared log and clock, and their faults."""

    def __init__(self, chooser: Chooser, variant: Variant | None = None, *, processes: int = 2, depth: int = 2) -> None:
        """`depth` is the maximum number of processes that are frozen inside each other's appends."""
        self.variant = variant or Variant()
        self.chooser = chooser
        self.clock = FakeClock()
        self.log = SharedLog(clock=self.clock, random=Random(1))
        self.log.around = self._meanwhile
        self.sessions = Sessions()
        self.sessions.around = self._meanwhile
        self.log.wrote_lease = self._on_lease
        self.processes = [Process(self, f"p{number}", 3600.0 * (number % 3 - 1)) for number in range(processes)]
        self._born = processes
        self.problems: list[str] = []
        self._depth = depth
        self._inside = 0
        self._names = 0
        self._written_at = 0.0

    def run(self, actions: int) -> None:
        """Run `count` random steps."""
        for _ in range(actions):
            self.act()

    def act(self) -> None:
        """Run one random event."""
        kinds = (self._step, self._hear, self._begin, self._write, self._pass, self._fault)
        kinds[self.chooser.choose(len(kinds))]()

    def _process(self) -> Process:
        return self.processes[self.chooser.choose(len(self.processes))]

    def _step(self) -> None:
        process = self._process()
        if process.can_act:
            self._alone(process, process.step)

    def _begin(self) -> None:
        process = self._process()
        if process.can_act:
            process.begin()

    def _write(self) -> None:
        process = self._process()
        if process.can_act:
            self._alone(process, process.write)

    def _alone(self, process: Process, do: Callable[[], None]) -> None:
        """Run one step of one process; meanwhile, the process runs no other step."""
        process.frozen = True
        try:
            do()
        finally:
            process.frozen = False

    def _hear(self) -> None:
        process = self._process()
        if not process.dead:
            process.hear()

    def _pass(self) -> None:
        self.clock.step(STEPS[self.chooser.choose(len(STEPS))])

    def _fault(self) -> None:
        """Kill or stop a process, or lose its session; start a new process for a process that has ended."""
        number = self.chooser.choose(len(self.processes))
        process = self.processes[number]
        if process.dead or (process.leaving and not process.elector.term and not process.work):
            self._born += 1
            self.processes[number] = Process(self, f"p{self._born}", 3600.0 * (self._born % 3 - 1))
            return
        match self.chooser.choose(6):
            case 0 if process.can_act:
                process.dead = True
                self.sessions.end(process.name)
            case 1 if process.can_act:
                process.leaving = True
                self._alone(process, process.drain)
            case 2:
                self.sessions.end(process.name)

    def _meanwhile(self) -> None:
        """Let other processes act during an append of one process."""
        if self._inside >= self._depth:
            return
        self._inside += 1
        try:
            for _ in range(self.chooser.choose(3)):
                self.act()
        finally:
            self._inside -= 1

    def _on_lease(self, before: Object | None, after: Object) -> None:
        """Check that the write replaced no leader that was still running; called after each write of the Lease."""
        now = held(after)
        then = held(before).holder if before is not None else ""
        if "" not in (then, now.holder) and then != now.holder and self._lives(then):
            self.problems.append(f"{now.holder} began term {now.term} while {then} lived and led")
        self._written_at = self.clock.monotonic()
        session = self.sessions.name(now.holder)
        if session not in self.sessions.ended:
            self.sessions.lost.discard(session)

    def _lives(self, holder: str) -> bool:
        """Return whether the Lease is valid and the session of its holder has existed since the Lease was written."""
        is_good = self.clock.monotonic() < self._written_at + TIMING.lease_duration
        return is_good and self.sessions.name(holder) not in self.sessions.lost

    def begins(self, process: Process, fence: Fence) -> None:
        """Check that a reconcile begins before the renewal deadline, which is counted from the last renewal."""
        lease = process.elector._term
        assert lease is not None
        since = process.clock.monotonic() - lease.renewed_at
        if since >= TIMING.renew_deadline:
            self.problems.append(f"{process.name} began to work {since:g} s after it began its last renewal")

    def write(self, process: Process, term: int, fence: Fence) -> None:
        """Append a write of a reconcile that has the fence of `term`."""
        self._names += 1
        body = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": f"c{self._names}", "namespace": "work"}}
        proposal = Proposal(EventType.ADDED, Object.from_dict(body), 0)
        author = Author(f"{process.name} {term}")
        if self.variant.unfenced:
            # A broken variant: it reads the term from the log before the append, so the term may be outdated at the
            # append.
            if process.elector.term != term or self._newest_term() != term:
                raise Fenced
            self.log.append([proposal], author=author)
        else:
            self.log.append([proposal], author=author, fence=fence)

    def _newest_term(self) -> int:
        lease = self.log.get(LEASES, KEY)
        return 0 if lease is None else held(lease).term

    def violations(self) -> list[str]:
        """Return the invariants that the log violates."""
        return [*self.problems, *violations(self.log.events_after(0, limit=1_000_000))]

    def heal(self) -> bool:
        """Run the processes without faults for a while; return whether a new process then leads and can write."""
        self.chooser = RandomChooser(0)
        self.log.around = self.sessions.around = lambda: None
        for process in self.processes:
            process.dead = True
        survivor = Process(self, "survivor", 0.0)
        self.processes.append(survivor)
        until = self.clock.monotonic() + TIMING.lease_duration + 1  # the process that held the lease sends nothing
        while self.clock.monotonic() < until:
            survivor.hear()
            while survivor.work:
                survivor.write()
            survivor.step()
            self.clock.step(0.5)
        survivor.hear()
        survivor.begin()
        return bool(survivor.work)


def violations(events: Sequence[Event]) -> Iterator[str]:
    """Yield the violations in the log: writes of an older term, decreasing terms, writes after the
    Lease was released.
    """
    current = 0
    released = 0
    for event in events:
        if event.resource == LEASES:
            lease = held(event.object)
            if lease.term < current:
                yield f"term {lease.term} began or was renewed at {event.revision}, in term {current}"
            current = max(current, lease.term)
            released = lease.term if not lease.holder else released
            continue
        term = int(event.actor.split()[-1])
        if term != current:
            yield f"{event.actor} wrote at {event.revision}, in term {current}"
        if term <= released:
            yield f"{event.actor} wrote at {event.revision}, having given the lease back"
