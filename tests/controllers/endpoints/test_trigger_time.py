from __future__ import annotations

import pytest

from ctrlmgr.api.core import Pod
from ctrlmgr.api.resource import Key
from ctrlmgr.controllers.endpoints.trigger_time import TriggerTimes, format_trigger_time
from ctrlmgr.testing.builders import a_pod

SERVICE = Key("default", "web")
CREATED = 10


def at(second: int) -> str:
    return f"1970-01-01T00:00:{second:02}Z"


def pods(**ready_since: int | None) -> list[Pod]:
    return [
        a_pod(name, ready_since=None if second is None else at(second)).view(Pod)
        for name, second in ready_since.items()
    ]


def observe(times: TriggerTimes, created: int | None, found: list[Pod]) -> int | None:
    """Return a time in whole seconds."""
    micros = times.observe(SERVICE, None if created is None else created * 1_000_000, found)
    return None if micros is None else micros // 1_000_000


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param(pods(a=20), pods(a=20), None, id="nothing changed"),
        pytest.param(pods(a=20), pods(a=30), 30, id="a pod's readiness changed"),
        pytest.param(pods(a=20, b=20), pods(a=40, b=30), 30, id="of several changes the oldest counts"),
        pytest.param(pods(a=20), pods(a=20, b=15), 15, id="a new pod counts however old it is"),
        pytest.param(pods(a=20, b=30), pods(a=20), None, id="a pod that went does not tell when"),
        pytest.param(pods(a=30), pods(a=20), None, id="a time that went back is no change"),
        pytest.param(pods(a=None), pods(a=None, b=None), None, id="pods that do not say when tell nothing"),
        pytest.param(pods(a=None), pods(a=25), 25, id="a pod begins to say when"),
        pytest.param([], [], None, id="without pods"),
    ],
)
def test_later_calls_return_the_oldest_change_since_the_previous_call(
    before: list[Pod], after: list[Pod], expected: int | None
) -> None:
    times = TriggerTimes()
    observe(times, CREATED, before)
    assert observe(times, CREATED, after) == expected


def test_the_first_call_returns_the_creation_of_the_service() -> None:
    assert observe(TriggerTimes(), CREATED, pods(a=5, b=50)) == CREATED


def test_the_first_call_returns_none_without_a_creation_time() -> None:
    assert observe(TriggerTimes(), None, pods(a=5)) is None


def test_a_recreated_service_counts_as_a_change() -> None:
    times = TriggerTimes()
    observe(times, CREATED, [])
    assert observe(times, 40, []) == 40


def test_a_discarded_service_starts_again() -> None:
    times = TriggerTimes()
    observe(times, CREATED, pods(a=20))
    times.forget(SERVICE)
    assert observe(times, CREATED, pods(a=30)) == CREATED


def test_services_do_not_share_their_times() -> None:
    times = TriggerTimes()
    observe(times, CREATED, pods(a=20))
    assert times.observe(Key("default", "other"), 7, pods(a=20)) == 7


@pytest.mark.parametrize(
    ("microseconds", "text"),
    [
        pytest.param(1_795_220_000_000_000, "2026-11-21T00:13:20Z", id="whole seconds without decimals"),
        pytest.param(1_795_220_000_120_000, "2026-11-21T00:13:20.12Z", id="decimals without zeros at the end"),
        pytest.param(1_795_220_000_000_001, "2026-11-21T00:13:20.000001Z", id="down to the microsecond"),
    ],
)
def test_trigger_times_are_written_as_rfc3339_nano(microseconds: int, text: str) -> None:
    assert format_trigger_time(microseconds) == text
