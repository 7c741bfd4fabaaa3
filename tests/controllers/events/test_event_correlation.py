from __future__ import annotations

from ctrlmgr.api.core import ObjectReference
from ctrlmgr.controllers.events.event_correlation import (
    BURST,
    INTERVAL,
    REFILL,
    REMEMBERED,
    SIMILAR,
    CorrelatedEvent,
    Correlator,
    Occurrence,
)

MANY = 1e9
"""Seconds after which every event source may again send its maximum burst of Events."""


def an_occurrence(message: str = "it failed", at: int = 0, **changes: str) -> Occurrence:
    subject = ObjectReference("Service", "a", changes.pop("subject", "web"), "uid", "v1", changes.pop("version", "1"))
    fields = {"type": "Warning", "reason": "Failed", "component": "tester", "action": "", **changes}
    type_, reason, component, action = (fields[each] for each in ("type", "reason", "component", "action"))
    return Occurrence(subject, type_, reason, message, component, action, at, f"web.{at:x}")


def correlated(correlator: Correlator, occurrence: Occurrence, now: float = 0.0) -> CorrelatedEvent:
    sighting = correlator.correlate(occurrence, now)
    assert sighting is not None
    return sighting


def test_an_equal_event_increases_the_count() -> None:
    correlator = Correlator()
    correlated(correlator, an_occurrence(at=1))
    assert correlated(correlator, an_occurrence(at=5, version="2")) == CorrelatedEvent(
        an_occurrence(at=5, version="2"), name="web.1", first=1, times=2
    )


def test_any_other_difference_creates_another_event() -> None:
    correlator = Correlator()
    correlated(correlator, an_occurrence(at=1))
    others = [
        an_occurrence("it failed again", at=2),
        an_occurrence(at=3, type="Normal"),
        an_occurrence(at=4, reason="Other"),
        an_occurrence(at=5, component="somebody"),
        an_occurrence(at=6, subject="db"),
    ]
    assert [correlated(correlator, each).name for each in others] == ["web.2", "web.3", "web.4", "web.5", "web.6"]


def test_the_tenth_similar_message_and_later_ones_are_one_event() -> None:
    correlator = Correlator()
    sightings = [correlated(correlator, an_occurrence(f"failure {number}", at=number)) for number in range(SIMILAR + 3)]
    assert [each.times for each in sightings] == [1] * SIMILAR + [2, 3, 4]
    assert {each.name for each in sightings[SIMILAR - 1 :]} == {"web.9"}
    assert sightings[SIMILAR - 2].occurrence.message == "failure 8"
    assert [each.occurrence.message for each in sightings[SIMILAR - 1 :]] == [
        f"(combined from similar events): failure {number}" for number in range(SIMILAR - 1, SIMILAR + 3)
    ]


def test_a_repeated_message_is_not_counted_as_similar() -> None:
    correlator = Correlator()
    for number in range(SIMILAR - 1):
        correlated(correlator, an_occurrence(f"failure {number}", at=number))
    assert correlated(correlator, an_occurrence("failure 0", at=50)) == CorrelatedEvent(
        an_occurrence("failure 0", at=50), name="web.0", first=0, times=2
    )


def test_similar_events_expire_after_ten_quiet_minutes() -> None:
    for pause, is_combined in ((INTERVAL, True), (INTERVAL + 1, False)):
        correlator = Correlator()
        for number in range(SIMILAR - 1):
            correlated(correlator, an_occurrence(f"failure {number}", at=number), now=MANY)
        last = correlated(correlator, an_occurrence("the last straw", at=99), now=MANY + pause)
        assert last.occurrence.message.startswith("(combined") is is_combined


def test_events_about_one_object_are_rate_limited() -> None:
    correlator = Correlator()
    passed = [correlator.correlate(an_occurrence(at=number), 0.0) is not None for number in range(BURST + 2)]
    assert passed == [True] * BURST + [False] * 2
    assert correlator.correlate(an_occurrence(), REFILL - 1) is None
    refilled = correlated(correlator, an_occurrence(), REFILL)
    assert refilled.times == BURST + 4, "what was dropped counts as well"
    assert correlator.correlate(an_occurrence(), REFILL) is None


def test_rate_limit_of_one_source_does_not_affect_others() -> None:
    correlator = Correlator()
    for number in range(BURST + 1):
        correlator.correlate(an_occurrence(at=number), 0.0)
    assert correlator.correlate(an_occurrence(subject="db"), 0.0) is not None
    assert correlator.correlate(an_occurrence(component="somebody"), 0.0) is not None


def test_the_burst_is_limited() -> None:
    correlator = Correlator()
    correlator.correlate(an_occurrence(), 0.0)
    passed = [correlator.correlate(an_occurrence(at=number), MANY) is not None for number in range(BURST + 1)]
    assert passed == [True] * BURST + [False]


def test_old_correlation_state_expires() -> None:
    correlator = Correlator()
    correlated(correlator, an_occurrence(at=1, subject="old"))
    for number in range(REMEMBERED):
        correlator.correlate(an_occurrence(at=2, subject=f"object-{number}"), 0.0)
    assert correlated(correlator, an_occurrence(at=3, subject="old")).times == 1
