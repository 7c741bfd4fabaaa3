"""Tests of handlers that raise errors: the informer removes such a handler, other handlers get all events, and a health
check reports the removal.
"""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from ctrlmgr.api.resource import PODS, Key
from ctrlmgr.errors import LogCorrupt
from ctrlmgr.informer import Change, EventWindow, Informers
from ctrlmgr.informer.quarantine import Quarantine
from ctrlmgr.metrics import REGISTRY
from ctrlmgr.server.pages.health import Check, Health
from ctrlmgr.testing import FakeClock
from tests.informer.shared_log import SharedLog, thing


class RaisingHandler:
    """A handler that raises an error for one object."""

    def __init__(self, over: str, error: Exception) -> None:
        self.told: list[str] = []
        self._over = over
        self._error = error

    def __call__(self, change: Change) -> None:
        self.told.append(change.object.name)
        if change.object.name == self._over:
            raise self._error


@pytest.fixture
def log() -> SharedLog:
    return SharedLog(clock=FakeClock())


def informers_of(log: SharedLog, quarantine: Quarantine | None) -> Informers:
    clock = FakeClock()
    return Informers(log, EventWindow(log, capacity=4, clock=clock), clock=clock, quarantine=quarantine)


def test_a_failing_handler_is_removed_and_others_receive_everything(log: SharedLog) -> None:
    informers = informers_of(log, Quarantine())
    before, raising, after = (RaisingHandler(over, ValueError("a bug")) for over in ("", "b", ""))
    for name, handler in (("first", before), ("second", raising), ("third", after)):
        informers.informer(PODS).add_handler(handler, name=name)
    informers.sync()
    assert informers.problem() is None
    with capture_logs() as logged:
        for name in ("a", "b", "c"):
            log.put(thing(name))
            informers.step()
    assert (before.told, raising.told, after.told) == (["a", "b", "c"], ["a", "b"], ["a", "b", "c"])
    assert informers.problem() == "second (pods) raised an error and was removed; the log has the traceback"
    health = Health("readyz", [Check("informer-handlers", informers.problem)])
    assert health.report(verbose=True)[1].startswith("[-]informer-handlers failed: reason withheld\n")
    (entry,) = [each for each in logged if each["log_level"] == "error"]
    assert (entry["handler"], entry["object"], str(entry["exc_info"])) == ("second", str(Key("default", "b")), "a bug")
    series = {"resource": "pods", "handler": "second"}
    assert REGISTRY.get_sample_value("informer_quarantined_handlers", series) == 1
    assert informers.informer(PODS).lister.get(Key("default", "c")) is not None


def test_a_handler_that_fails_on_existing_objects_is_removed(log: SharedLog) -> None:
    informers = informers_of(log, Quarantine())
    raising, other = RaisingHandler("a", KeyError("spec")), RaisingHandler("", ValueError())
    informers.informer(PODS).add_handler(raising, name="raising")
    informers.informer(PODS).add_handler(other)
    for name in ("a", "b"):
        log.put(thing(name))
    informers.sync()
    assert (raising.told, other.told) == (["a"], ["a", "b"])
    assert informers.problem() is not None
    assert informers.has_synced()


def test_a_failing_resync_handler_is_removed_alone(log: SharedLog) -> None:
    informers = informers_of(log, Quarantine())
    heard: list[str] = []

    def raising() -> None:
        heard.append("raising")
        raise ValueError("a bug")

    informers.informer(PODS).add_sync_handler(raising, name="raising")
    informers.informer(PODS).add_sync_handler(lambda: heard.append("other"))
    for _ in range(3):
        informers.sync()
    assert heard == ["raising", "other", "other"]


@pytest.mark.parametrize(
    ("quarantine", "vital", "error"),
    [
        (None, False, ValueError("a bug")),  # in tests and replays, the error must reach the caller
        (Quarantine(), True, ValueError("a bug")),  # other components would use its incomplete state
        (Quarantine(), False, LogCorrupt("the log")),  # no handler has caused this error
    ],
)
def test_fatal_errors_of_a_handler_are_raised(
    log: SharedLog, quarantine: Quarantine | None, vital: bool, error: Exception
) -> None:
    informers = informers_of(log, quarantine)
    informers.informer(PODS).add_handler(RaisingHandler("a", error), vital=vital)
    informers.sync()
    log.put(thing("a"))
    with pytest.raises(type(error)):
        informers.step()
    assert informers.problem() is None
