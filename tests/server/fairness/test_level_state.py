"""Tests of priority levels: their shares of the seats, borrowed seats, and their removal when they are idle after their
deletion.
"""

from __future__ import annotations

from typing import Any

import pytest

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key
from ctrlmgr.authentication.user import User
from ctrlmgr.authorization.attributes import Attributes
from ctrlmgr.kinds.flowcontrol.flow_resources import FLOW_SCHEMAS, LEVELS
from ctrlmgr.kinds.flowcontrol.suggested_configuration import BOOTSTRAP_LEVELS, BOOTSTRAP_SCHEMAS, bootstrap_object
from ctrlmgr.server.fairness.fair_queuing import Ticket
from ctrlmgr.server.fairness.level_state import Flow, LevelStates
from tests.server.fairness.fairness_stage import Timers, start

JANE = User("jane", "", ("system:authenticated",))
ADMIN = User("admin", "", ("system:masters", "system:authenticated"))
NODE = User("system:node:a", "", ("system:nodes", "system:authenticated"))
LIST = Attributes("list", group="", version="v1", resource="pods", namespace="shop")


def made(kind: str, name: str, spec: Any) -> Object:
    fields = bootstrap_object(kind, name, spec)
    fields["metadata"]["uid"] = f"uid-of-{name}"
    return Object.from_dict(fields)


class LevelStage:
    """Return the priority levels of a new cluster, with their own clock."""

    def __init__(self, total: int = 600, *, empty: bool = False) -> None:
        self.timers = Timers()
        self.states = LevelStates(total, now=self.timers.now, later=self.timers.later)
        if not empty:
            levels = [made("PriorityLevelConfiguration", *each) for each in BOOTSTRAP_LEVELS.items()]
            self.states.reset(LEVELS, levels)
            self.states.reset(FLOW_SCHEMAS, [made("FlowSchema", *each) for each in BOOTSTRAP_SCHEMAS.items()])

    def seats(self) -> dict[str, int]:
        return {level.name: level.current for level in self.states.levels}

    def nominal(self) -> dict[str, int]:
        return {level.name: level.nominal for level in self.states.levels}

    def pass_by(self, seconds: int) -> None:
        for _ in range(seconds):
            self.timers.advance(1.0)
            self.states.tick()

    def busy(self, flow: Flow, count: int) -> list[Ticket]:
        tickets = [start(flow.queues, flow) for _ in range(count)]
        assert None not in tickets
        return [each for each in tickets if each is not None]


@pytest.fixture
def world() -> LevelStage:
    return LevelStage()


@pytest.mark.parametrize(
    ("user", "asked", "schema", "level"),
    [
        (ADMIN, LIST, "exempt", "exempt"),
        (JANE, LIST, "global-default", "global-default"),
        (NODE, LIST, "system-nodes", "system"),
        (NODE, LIST._replace(resource="nodes", namespace=""), "system-node-high", "node-high"),
        (User("anybody"), LIST, "catch-all", "catch-all"),
        (JANE, Attributes("get", "/livez/ping", is_resource=False), "probes", "exempt"),
    ],
)
def test_requests_are_assigned_like_in_kubernetes(
    world: LevelStage, user: User, asked: Attributes, schema: str, level: str
) -> None:
    flow = world.states.assign(user, asked)
    assert (flow.schema.name, flow.level.name) == (schema, level)
    assert flow.headers == (
        (b"x-kubernetes-pf-flowschema-uid", f"uid-of-{schema}".encode()),
        (b"x-kubernetes-pf-prioritylevel-uid", f"uid-of-{level}".encode()),
    )


def test_seats_follow_from_the_shares(world: LevelStage) -> None:
    assert world.nominal() == {
        "catch-all": 13,
        "exempt": 0,
        "global-default": 49,
        "leader-election": 25,
        "node-high": 98,
        "system": 74,
        "workload-high": 98,
        "workload-low": 245,
    }
    assert sum(world.seats().values()) == pytest.approx(sum(world.nominal().values()), abs=4)


def test_a_busy_level_borrows_what_others_lend_and_returns_it(world: LevelStage) -> None:
    before = world.seats()
    flow = world.states.assign(JANE, LIST)
    tickets = world.busy(flow, 300)
    world.pass_by(10)
    assert world.seats()["global-default"] > max(150, before["global-default"])
    for level in world.states.levels:
        assert level.current >= level.minimum
    world.timers.advance(0.0)
    assert all(each.is_running for each in tickets)
    for ticket in tickets:
        (flow.queues.finish if ticket.is_running else flow.queues.cancel)(ticket)
    world.pass_by(3600)
    assert world.seats() == pytest.approx(before, abs=2)


def test_exempt_requests_are_counted_against_the_others() -> None:
    world = LevelStage(60)
    world.busy(world.states.assign(ADMIN, LIST), 50)
    world.pass_by(10)
    assert world.seats()["exempt"] == 50
    assert all(level.current <= max(level.minimum, 1) or level.is_exempt for level in world.states.levels)


def test_without_objects_the_mandatory_ones_apply() -> None:
    world = LevelStage(empty=True)
    assert world.nominal() == {"catch-all": 600, "exempt": 0}
    assert world.states.assign(JANE, LIST).headers[0] == (b"x-kubernetes-pf-flowschema-uid", b"")
    assert world.states.assign(ADMIN, LIST).level.is_exempt


def test_a_schema_whose_level_is_missing_is_ignored(world: LevelStage) -> None:
    world.states.apply(LEVELS, Key("", "global-default"), None)
    assert world.states.assign(JANE, LIST).schema.name == "catch-all"
    assert "global-default" not in world.seats()


def test_a_deleted_level_lasts_until_its_last_request_ends(world: LevelStage) -> None:
    flow = world.states.assign(JANE, LIST)
    (ticket,) = world.busy(flow, 1)
    world.states.apply(LEVELS, Key("", "global-default"), None)
    world.pass_by(1)
    (level,) = [each for each in world.states.levels if each.name == "global-default"]
    assert level.is_quiescing
    flow.queues.finish(ticket)
    world.pass_by(1)
    assert "global-default" not in world.seats()


def test_an_invalid_level_is_ignored(world: LevelStage) -> None:
    broken = made("PriorityLevelConfiguration", "system", {"type": "Limited"})
    world.states.apply(LEVELS, Key("", "system"), broken)
    assert world.states.assign(NODE, LIST).schema.name == "global-default"


def test_changed_shares_apply_at_once(world: LevelStage) -> None:
    spec = {**BOOTSTRAP_LEVELS["global-default"]}
    spec["limited"] = {**spec["limited"], "nominalConcurrencyShares": 265}
    generation = world.states.generation
    world.states.apply(LEVELS, Key("", "global-default"), made("PriorityLevelConfiguration", "global-default", spec))
    assert world.states.generation > generation
    assert world.nominal()["global-default"] == 325
