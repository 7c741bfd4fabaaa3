"""Property tests of random histories against a model of a list and a dict: the log and the model give equal results for
every query.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from ctrlmgr.api.resource import PODS, SERVICES, Resource
from ctrlmgr.errors import AlreadyExists, ApiError, Conflict, Expired, NotFound
from ctrlmgr.eventlog import Author, EventType, Proposal, migrate_log, open_log, verify
from ctrlmgr.testing import FakeClock
from ctrlmgr.testing.eventlog_contract import VerifiableLog, thing

PLACES = [(kind, name) for kind in ("Pod", "Service") for name in ("a", "b", "c")]
RESOURCES: dict[str, Resource] = {"Pod": PODS, "Service": SERVICES}
Place = tuple[str, str]
Change = tuple[EventType, Place, int]

changes = st.tuples(st.sampled_from(EventType), st.sampled_from(PLACES), st.integers(-1, 2))


class Model:
    """The states by revision: `states[r]` maps each key that exists at r to the revision of its object."""

    def __init__(self) -> None:
        self.states: list[dict[Place, int]] = [{}]
        self.events: list[tuple[int, EventType, Place]] = []
        self.floors: dict[Resource | None, int] = {}

    @property
    def head(self) -> int:
        return len(self.states) - 1

    def floor(self, resource: Resource | None) -> int:
        if resource is None:
            return max(self.floors.values(), default=0)
        return max(self.floors.get(resource, 0), self.floors.get(None, 0))

    def apply(self, batch: list[tuple[EventType, Place, int | None]]) -> type[ApiError] | None:
        states, events = list(self.states), list(self.events)
        for type_, place, expected in batch:
            now = dict(states[-1])
            if type_ is EventType.ADDED:
                if place in now:
                    return AlreadyExists
            elif place not in now:
                return NotFound
            elif expected is not None and expected != now[place]:
                return Conflict
            now[place] = len(states)
            if type_ is EventType.DELETED:
                del now[place]
            events.append((len(states), type_, place))
            states.append(now)
        self.states, self.events = states, events
        return None


class LogMachine(RuleBasedStateMachine):
    log: VerifiableLog

    def __init__(self) -> None:
        super().__init__()
        self.log = self.fresh()
        self.model = Model()

    def fresh(self) -> VerifiableLog:
        return open_log("memory:", clock=FakeClock(), random=random.Random(1))

    def teardown(self) -> None:
        self.log.close()

    def expected(self, type_: EventType, place: Place, choice: int) -> int | None:
        """The expected revision of a proposal: -1 stands for any revision, 0 for the correct revision, and other
        numbers for a wrong revision.
        """
        if type_ is EventType.ADDED:
            return 0
        return None if choice < 0 else self.model.states[-1].get(place, 0) + choice

    @rule(batch=st.lists(changes, min_size=1, max_size=4))
    def append(self, batch: list[Change]) -> None:
        steps = [(type_, place, self.expected(type_, place, choice)) for type_, place, choice in batch]
        proposals = [Proposal(type_, thing(place[1], kind=place[0]), expected) for type_, place, expected in steps]
        refused = self.model.apply(steps)
        if refused:
            with pytest.raises(refused):
                self.log.append(proposals, author=Author("fuzz"))
        else:
            events = self.log.append(proposals, author=Author("fuzz"))
            assert events[-1].revision == self.model.head

    @rule(back=st.integers(0, 4), keep=st.integers(1, 3), resource=st.sampled_from([None, PODS, SERVICES]))
    def compact(self, back: int, keep: int, resource: Resource | None) -> None:
        before = max(0, self.model.head - back)
        self.log.compact(before, resource=resource, keep=keep)
        self.model.floors[resource] = max(self.model.floors.get(resource, 0), before)

    @rule(data=st.data())
    def look_back(self, data: st.DataObject) -> None:
        at = data.draw(st.integers(0, self.model.head))
        for resource in (None, PODS, SERVICES):
            if at < self.model.floor(resource):
                with pytest.raises(Expired):
                    self.log.snapshot(resource, at=at)
                with pytest.raises(Expired):
                    self.log.events_after(at, resource=resource)
                continue
            found = {(obj.kind, obj.name): obj.revision for obj in self.log.snapshot(resource, at=at).objects}
            assert found == self.of(resource, self.model.states[at])
            read = [(event.revision, event.type) for event in self.log.events_after(at, resource=resource)]
            wanted = [event for event in self.model.events if event[0] > at]
            assert read == [(r, t) for r, t, place in wanted if resource in (None, RESOURCES[place[0]])]

    def of(self, resource: Resource | None, state: dict[Place, int]) -> dict[Place, int]:
        return {place: r for place, r in state.items() if resource in (None, RESOURCES[place[0]])}

    @invariant()
    def the_present_is_right_and_the_chain_sound(self) -> None:
        found = {(obj.kind, obj.name): obj.revision for obj in self.log.snapshot().objects}
        assert found == self.model.states[-1]
        assert verify(self.log).head.revision == self.model.head


SETTINGS = settings(
    max_examples=25,
    stateful_step_count=20,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    derandomize=True,
    database=None,
)


@pytest.mark.slow
def test_memory_behaves_like_the_model() -> None:
    run_state_machine_as_test(LogMachine, settings=settings(SETTINGS, max_examples=100))


@pytest.mark.slow
def test_sqlite_behaves_like_the_model(tmp_path: Path) -> None:
    template = tmp_path / "template.db"
    migrate_log(f"sqlite:///{template}", clock=FakeClock(), random=random.Random(1))

    class Machine(LogMachine):
        numbers: Iterator[int] = iter(range(1_000_000))

        def fresh(self) -> VerifiableLog:
            path = tmp_path / f"{next(self.numbers)}.db"
            shutil.copy(template, path)
            return open_log(f"sqlite:///{path}", clock=FakeClock(), random=random.Random(1))

    run_state_machine_as_test(Machine, settings=SETTINGS)


@pytest.mark.slow
@pytest.mark.postgres
def test_postgres_behaves_like_the_model(postgres_urls: Iterator[str]) -> None:
    class Machine(LogMachine):
        def fresh(self) -> VerifiableLog:
            return open_log(next(postgres_urls), clock=FakeClock(), random=random.Random(1))

    run_state_machine_as_test(Machine, settings=settings(SETTINGS, max_examples=15))
