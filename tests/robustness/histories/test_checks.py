"""Tests that every check detects its violation: a test makes one change to a correct history, and the check must report
it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.robustness.checks import CHECKS, check
from tests.robustness.checks.coverage import acknowledged_rate, gaps
from tests.robustness.checks.evidence import Evidence
from tests.robustness.histories.history import NEVER, Delivery, History, Item, Page, Write
from tests.robustness.histories.sample import bookmark, moment, sound

Spoil = Callable[[History], object]


def test_a_correct_history_is_accepted() -> None:
    assert check(sound()) == []


def of(history: History, id: str) -> Write:
    return next(write for write in history.writes if write.id == id)


def logged(history: History, revision: int, **fields: Any) -> None:
    history.log[revision - 1] = msgspec.structs.replace(history.log[revision - 1], **fields)


def add_delivery(history: History, watch: int, at: int, **fields: Any) -> None:
    deliveries = history.watches[watch].deliveries
    deliveries[at] = deliveries[at]._replace(**fields)


def moved(history: History, watch: int, at: int, to: int) -> None:
    deliveries = history.watches[watch].deliveries
    deliveries.insert(to, deliveries.pop(at))


def page(history: History, read: int, at: int = 0, **fields: Any) -> None:
    pages = history.reads[read].pages
    pages[at] = msgspec.structs.replace(pages[at], **fields)


def given(thing: object, **fields: Any) -> None:
    for name, value in fields.items():
        setattr(thing, name, value)


# The watches of the sample: Watch 0 gets everything from 2 with a bookmark, and watch 1 gets RED from 2. Watch 2 gets
# events from 4 with a bookmark inside. Watches 3 and 4 have initial events without a mark at their end. Watch 5
# requests compacted revisions, and watch 6 has a timeout. Watches 7 and 8 belong to an informer.
SPOILT: list[tuple[str, str, Spoil]] = [
    ("L1 acknowledged writes are in the log", "lost", lambda h: logged(h, 4, write="")),
    ("L1 acknowledged writes are in the log", "twice", lambda h: logged(h, 7, write="w4")),
    ("L1 acknowledged writes are in the log", "elsewhere", lambda h: given(of(h, "w4"), revision=3)),
    ("L1 acknowledged writes are in the log", "another change", lambda h: given(of(h, "w4"), verb="delete")),
    ("L2 refused writes are not in the log", "done", lambda h: logged(h, 4, write="r1")),
    ("L2 refused writes are not in the log", "nobody's", lambda h: logged(h, 4, write="nobody")),
    ("L2 refusals are true", "no conflict", lambda h: given(of(h, "r1"), expected=3)),
    ("L2 refusals are true", "it was there", lambda h: given(of(h, "r3"), name="b")),
    ("L2 refusals are true", "nothing was there", lambda h: given(of(h, "r2"), name="c")),
    ("L5 the log's order is that of time", "late", lambda h: given(of(h, "w6"), called=moment(7.2))),
    ("L5 preconditions hold", "another revision", lambda h: given(of(h, "w3"), expected=2)),
    ("L5 preconditions hold", "created twice", lambda h: logged(h, 4, type="ADDED")),
    ("L6 no revision is missing", "a gap", lambda h: h.log.pop(3)),
    ("G4 answers are as expected", "500", lambda h: given(of(h, "w4"), code=500)),
    ("G4 answers are as expected", "no answer", lambda h: given(of(h, "w4"), code=0)),
    ("G4 servers expect what happens", "a traceback", lambda h: h.tracebacks.append("Traceback")),
    ("R1 reads are fresh", "a stale list", lambda h: page(h, 1, revision=3)),
    ("R1 reads are fresh", "a stale object", lambda h: given(h.reads[6], pages=[stale_object(h)])),
    ("R1 reads are fresh", "an object overlooked", lambda h: page(h, 6, code=404, items=[])),
    ("R2 reads are not of the future", "too new", lambda h: page(h, 0, revision=6)),
    ("R3 reads show one state", "less than there was", lambda h: h.reads[0].pages[0].items.pop()),
    ("R3 reads show one state", "another content", lambda h: page(h, 5, items=h.reads[0].pages[0].items)),
    ("R3 reads show one state", "pages of two states", lambda h: page(h, 2, at=1, revision=8)),
    ("R3 reads show one state", "a page left out", lambda h: h.reads[2].pages.pop(0)),
    ("R4 reads are of the revision asked for", "not exact", lambda h: page(h, 3, revision=7)),
    ("R4 reads are of the revision asked for", "older", lambda h: page(h, 4, revision=6)),
    ("R5 reads fail with reason", "not forgotten", lambda h: given(h.reads[7], version="5")),
    ("R5 reads fail with reason", "not the future", lambda h: given(h.reads[8], version="7")),
    ("R5 reads fail with reason", "slow to refuse", lambda h: page(h, 8, returned=moment(8.9))),
    ("R5 reads fail with reason", "500", lambda h: page(h, 7, code=500)),
    ("W1 ordered", "out of order", lambda h: moved(h, 0, 3, 1)),
    ("W1 ordered", "a bookmark goes back", lambda h: add_delivery(h, 0, 5, revision=4)),
    ("W2 unique", "twice", lambda h: h.watches[0].deliveries.insert(2, h.watches[0].deliveries[1])),
    ("W3 reliable", "left out", lambda h: h.watches[0].deliveries.pop(2)),
    ("W3 reliable", "a departure left out", lambda h: h.watches[1].deliveries.pop(4)),
    ("W5 resumable", "begins late", lambda h: h.watches[0].deliveries.pop(0)),
    ("W6 bookmarkable", "too early", lambda h: moved(h, 0, 5, 4)),
    ("W6 bookmarkable", "one is missing before it", lambda h: h.watches[0].deliveries.pop(4)),
    ("W6 bookmarkable", "not asked for", lambda h: given(h.watches[0], bookmarks=False)),
    ("W6 bookmarkable", "of the future", lambda h: add_delivery(h, 0, 5, revision=12)),
    ("W7 filter", "not selected", lambda h: h.watches[1].deliveries.append(h.watches[2].deliveries[0])),
    ("W8 type and object", "another type", lambda h: add_delivery(h, 1, 0, type="MODIFIED")),
    ("W8 type and object", "another object", lambda h: add_delivery(h, 0, 0, digest="d2")),
    ("W10 what begins in the future waits for it", "begins at once", lambda h: given(h.watches[0], version="3")),
    ("W11 initial events are a state", "one is missing", lambda h: h.watches[7].deliveries.pop(0)),
    ("W11 initial events are a state", "none there ever was", lambda h: add_delivery(h, 3, 0, digest="d1")),
    ("W11 initial events are a state", "older than known", lambda h: given(h.watches[7], called=moment(7.2))),
    ("W9 compaction is loud", "not forgotten", lambda h: given(h.watches[5], version="5")),
    ("W9 compaction is loud", "another error", lambda h: add_delivery(h, 5, 0, revision=500)),
    ("W9 compaction is loud", "goes on", lambda h: h.watches[5].deliveries.append(bookmark(9, 9))),
    ("W13 no end without a cause", "silently", lambda h: given(h.watches[0], ended="clean")),
    ("W13 no end without a cause", "before its time", lambda h: given(h.watches[6], timeout=60)),
    ("W13 no end without a cause", "long after its time", lambda h: given(h.watches[6], ended_at=moment(9))),
    ("W13 no end without a cause", "cut off", lambda h: given(h.watches[0], ended="cut")),
    ("W13 no end without a cause", "refused", lambda h: given(h.watches[0], code=503)),
    ("W13 what happens is told in time", "an empty stream", lambda h: h.watches[2].deliveries.clear()),
    ("W13 what happens is told in time", "it stopped telling", lambda h: given(h.watches[2], ended_at=moment(9.0))),
    ("W11 list and watch are complete", "lost between streams", lambda h: h.watches[8].deliveries.pop(0)),
    ("W11 list and watch are complete", "repeated", lambda h: h.watches[8].deliveries.insert(0, last_event(h, 7))),
    ("W11 list and watch are complete", "another list", lambda h: given(h.watches[7], listed=[Item("ns", "c", 1, "")])),
    ("W13 everybody gets to the end", "not to the end", lambda h: h.watches[8].deliveries.__delitem__(slice(5, None))),
]  # fmt: skip


def stale_object(history: History) -> Page:
    """Return the response to the GET with the state of the revision before the oldest allowed revision."""
    (found,) = (each for each in history.reads[3].pages[0].items if each.name == "a")
    return msgspec.structs.replace(history.reads[6].pages[0], items=[found], revision=found.revision)


def last_event(history: History, watch: int) -> Delivery:
    return history.watches[watch].deliveries[-1]


@pytest.mark.parametrize(
    ("name", "spoil"), [pytest.param(name, spoil, id=f"{name}: {how}") for name, how, spoil in SPOILT]
)
def test_wrong_histories_are_detected(name: str, spoil: Spoil) -> None:
    history = sound()
    spoil(history)
    assert list(CHECKS[name](Evidence(history)))


def test_every_check_has_detected_a_violation() -> None:
    assert {name for name, _, _ in SPOILT} == set(CHECKS)


def test_effects_of_injected_faults_are_accepted() -> None:
    history = sound()
    given(of(history, "w9"), code=0, returned=NEVER)  # answered or not, because the server was killed
    given(history.watches[8], called=moment(9.45))
    history.reads[0].pages[0] = msgspec.structs.replace(
        history.reads[0].pages[0], code=503, called=moment(9.2), returned=moment(9.3)
    )
    assert check(history) == []


def test_a_run_with_too_few_events_fails() -> None:
    history = sound()
    assert 0.09 < acknowledged_rate(history) < 0.11
    found = list(gaps(history, rate=50))
    assert found[0] == "only 0 writes a second were acknowledged before the first fault, not 50"
    assert "there was no acknowledged patch" in found
    assert "there was no conflict" not in found
    assert any("no writes" in gap or "only 0" in gap for gap in gaps(History(0, 0), rate=1))


def test_a_history_can_be_saved(tmp_path: Path) -> None:
    history = sound()
    history.save(tmp_path / "history.json")
    assert History.load(tmp_path / "history.json") == history
