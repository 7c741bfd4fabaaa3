"""Property tests: Endpoints and EndpointSlices finally equal the oracle's result, in any order of events and kills."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import ENDPOINT_SLICES, ENDPOINTS, Key
from tests.controllers.endpoints.check import KEPT, MIRRORED, Place, State
from tests.controllers.endpoints.endpoints_stage import EndpointsStage
from tests.controllers.endpoints.histories import DATABASE, SLICE_SIZE, WEB, Step, check_history, histories, kills
from tests.controllers.endpoints.oracle import ExpectedEndpoint, said_by_endpoints, said_by_slice

DAY: list[Step] = [
    ("serve", "default", "web", 0),
    ("settle",),
    ("pod", "default", "p", 0, WEB, "4", "Ready"),
    ("pod", "default", "q", 1, WEB, "46", "Ready"),
    ("settle",),
    ("pod", "default", "r", 0, WEB, "4", "Running"),
    ("pod", "default", "s", 1, WEB, "46", "Ready"),
    ("serve", "default", "web", 4),  # both families
    ("settle",),
    ("pod", "default", "p", 0, DATABASE, "4", "Ready"),
    ("serve", "default", "db", 0),
    ("serve", "other", "db", 0),
    ("settle",),
    ("lose", ENDPOINT_SLICES, 0),
    ("lose", ENDPOINTS, 1),
    ("settle",),
    ("pod", "default", "q", 1, WEB, "46", "Terminating"),
    ("kill_pod", "default", "s"),
    ("settle",),
    ("serve", "default", "db", 4),  # the Service has no selector any more
    ("settle",),
    ("endpoints", "default", "db", 3, True),
    ("settle",),
    ("endpoints", "default", "db", 2, True),
    ("settle",),
    ("unserve", "default", "db"),
    ("unserve", "default", "web"),
    ("settle",),
    ("serve", "default", "web", 3),
    ("terminate",),
    ("settle",),
]
"""A history with all kinds of writes: create, update, repair, leave, mirror, delete."""


# this would measure the speed of the machine
@settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
@given(histories, kills)
def test_a_history_ends_with_the_oracles_endpoints(steps: list[Step], kill_after: int) -> None:
    check_history(steps, kill_after)


def test_a_killed_process_reaches_the_same_end_state() -> None:
    undisturbed = check_history(DAY)
    appends = undisturbed.log.appended
    assert appends > 30
    ends = {kill_after: end_of(check_history(DAY, kill_after)) for kill_after in range(appends + 1)}
    assert {kill_after for kill_after, end in ends.items() if end != end_of(undisturbed)} == set()


def end_of(world: EndpointsStage) -> list[tuple[str, Place, str]]:
    """Return the final content of all Endpoints and slices, without the uids of pods, which depend on the number of
    created pods.
    """
    state = State(world)
    said: list[tuple[str, Place, ExpectedEndpoint]] = []
    for place in state.places:
        said += [("Endpoints", place, each) for each in said_by_endpoints(state.endpoints.get(place))]
        for manager in (KEPT, MIRRORED):
            slices = state.slices_of(place, manager)
            said += [(manager, place, each) for slice_ in slices for each in said_by_slice(slice_)]
    return sorted((kind, place, str(each._replace(target=(*each.target[:2], "")))) for kind, place, each in said)


def a_quiet_world() -> EndpointsStage:
    """Return a cluster with two Services: one selects pods, and the Endpoints of the other are written by a client."""
    return check_history(
        [
            ("serve", "default", "web", 0),
            *(("pod", "default", name, 0, WEB, "4", "Ready") for name in "pqrs"),
            ("serve", "default", "db", 4),
            ("endpoints", "default", "db", 1, True),
        ]
    )


def without(world: EndpointsStage, manager: str) -> None:
    slice_ = State(world).slices_of(("default", "web" if manager == KEPT else "db"), manager)[0]
    metadata = slice_["metadata"]
    found = world.get(ENDPOINT_SLICES, metadata["namespace"], metadata["name"])
    assert found is not None
    world.delete(found)


def changed_endpoints(world: EndpointsStage, **fields: object) -> None:
    found = world.log.get(ENDPOINTS, Key("default", "web"))
    assert found is not None
    world.put(Object.from_dict({**found.to_dict(), **fields}))


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda world: without(world, KEPT), id="a slice is missing"),
        pytest.param(lambda world: without(world, MIRRORED), id="a mirror is missing"),
        pytest.param(lambda world: changed_endpoints(world, subsets=[]), id="Endpoints say nothing"),
        pytest.param(lambda world: world.put(repeated(world)), id="two slices say the same"),
    ],
)
def test_the_oracle_detects_wrong_endpoints(spoil: Callable[[EndpointsStage], None]) -> None:
    world = a_quiet_world()
    State(world).check(SLICE_SIZE)
    spoil(world)
    with pytest.raises(AssertionError):
        State(world).check(SLICE_SIZE)


def repeated(world: EndpointsStage) -> Object:
    metadata = State(world).slices_of(("default", "web"), KEPT)[0]["metadata"]
    found = world.get(ENDPOINT_SLICES, metadata["namespace"], metadata["name"])
    assert found is not None
    return found.with_metadata(name="web-again", uid="again")
