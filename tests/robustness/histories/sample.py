"""A small correct history; tests change it so that a check must find a violation."""

from __future__ import annotations

from tests.robustness.histories.history import (
    BOOKMARK,
    ERROR,
    LAST,
    SECOND,
    Compaction,
    Delivery,
    Fault,
    History,
    Item,
    Logged,
    Page,
    Read,
    Selection,
    Watch,
    Write,
)
from tests.robustness.histories.truth import Truth

RED = Selection("ns", "", "in", ("red",))
EVERYTHING = Selection()
_TYPES = {"create": "ADDED", "update": "MODIFIED", "delete": "DELETED"}
_MAPS = "configmaps"


def moment(revision: float) -> int:
    """Return the time at which the write with a revision was acknowledged; its request was sent half a second before.

    The writes of two adjacent revisions are ten seconds apart.
    """
    return int(revision * 10 * SECOND)


class Sample:
    """Builds a history step by step; every step except a refusal is one event."""

    def __init__(self) -> None:
        self.history = History(seed=0, began=0)

    def write(self, verb: str, name: str, color: str = "", *, expected: int = 0, id: str = "") -> None:
        log = self.history.log
        former = [event for event in log if event.name == name]
        revision = len(log) + 1
        own = id or f"w{revision}"
        labels = {"color": color} if color else {}
        digest = former[-1].digest if verb == "delete" else f"d{revision}"
        previous = former[-1].revision if former else 0
        log.append(Logged(revision, previous, _TYPES[verb], _MAPS, "ns", name, "uid", labels, digest, own))
        self.attempt(verb, name, revision, id=own, expected=expected, code=201 if verb == "create" else 200)

    def attempt(self, verb: str, name: str, revision: float, *, id: str, expected: int = 0, code: int) -> None:
        delivered_events = int(revision) if 200 <= code < 300 and verb != "delete" else 0
        self.history.writes.append(
            Write(
                id=id,
                server=0,
                verb=verb,
                resource=_MAPS,
                namespace="ns",
                name=name,
                expected=expected,
                called=moment(revision) - SECOND // 2,
                returned=moment(revision),
                code=code,
                revision=delivered_events,
            )
        )

    def read(self, at: float, pages: list[list[Item]], *, revision: int, server: int = 0, **asked: object) -> None:
        read = Read(server=server, resource=_MAPS, selection=EVERYTHING, whole=True, **asked)  # type: ignore[arg-type]  # its fields
        when = moment(at)
        read.pages = [Page(when, when + SECOND, 200, revision, items) for items in pages]
        self.history.reads.append(read)

    def fail(self, at: float, code: int, *, version: str, took: int = SECOND) -> None:
        read = Read(server=0, resource=_MAPS, selection=EVERYTHING, version=version, match="Exact", whole=True)
        read.pages = [Page(moment(at), moment(at) + took, code, 0, [])]
        self.history.reads.append(read)

    def watch(self, called: float, until: float, version: str, deliveries: list[Delivery], **more: object) -> Watch:
        values = {"selection": EVERYTHING, "ended": "left", "bookmarks": True, "server": 0, **more}
        watch = Watch(
            resource=_MAPS,
            version=version,
            called=moment(called),
            code=200,
            deliveries=deliveries,
            ended_at=moment(until),
            **values,  # type: ignore[arg-type]  # its fields
        )
        self.history.watches.append(watch)
        return watch


def delivered_events(truth: Truth, selection: Selection, after: int, until: int) -> list[Delivery]:
    """Return the events of a watcher, each a tenth of a second after the acknowledgement of its write."""
    events = truth.events(_MAPS, selection, after, until)
    return [event._replace(at=moment(event.revision) + SECOND // 10) for event in events]


def bookmark(revision: int, at: float, *, initial_end: bool = False) -> Delivery:
    return Delivery(BOOKMARK, revision, "", "", "", moment(at), initial_end)


def initial(items: list[Item], at: float) -> list[Delivery]:
    return [Delivery("ADDED", each.revision, each.namespace, each.name, each.digest, moment(at)) for each in items]


def sound() -> History:
    """Return a history of seventeen events, with the responses to several clients."""
    sample = Sample()
    _write(sample)
    history = sample.history
    truth = Truth(history)
    history.faults = [Fault("kill", 0, moment(9.2), moment(9.4))]
    history.compactions = [Compaction(5, moment(8.2), moment(8.3))]
    _read(sample, truth)
    _watch(sample, truth)
    return history


def _write(sample: Sample) -> None:
    sample.write("create", "a", "red")  # 1
    sample.write("create", "b", "blue")  # 2
    sample.write("update", "a", "blue", expected=1)  # 3: leaves RED
    sample.attempt("update", "a", 3.3, id="r1", expected=1, code=409)
    sample.attempt("create", "a", 3.5, id="r2", code=409)
    sample.write("update", "b", "red")  # 4: enters RED
    sample.write("delete", "a")  # 5
    sample.attempt("delete", "a", 5.5, id="r3", code=404)
    sample.write("create", "a", "red")  # 6
    sample.write("update", "b", "red")  # 7
    sample.write("update", "a", "")  # 8: leaves RED
    sample.write("update", "a", "red", expected=8)  # 9
    for number in range(10, 17):
        sample.write("update", "ab"[number % 2], "red")
    sample.write("create", f"{LAST}0", "red", id=f"{LAST}0")  # 17


def _read(sample: Sample, truth: Truth) -> None:
    def state(revision: int) -> list[Item]:
        return truth.state(_MAPS, EVERYTHING, revision)

    sample.read(4.1, [state(4)], revision=4)
    sample.read(4.2, [state(4)], revision=4, server=1)
    sample.read(7.1, [state(7)[:1], state(7)[1:]], revision=7, limit=1)
    sample.read(8.1, [state(6)], revision=6, version="6", match="Exact")
    sample.read(8.1, [state(8)], revision=8, version="7", match="NotOlderThan")
    sample.read(8.1, [state(3)], revision=3, version="0")
    one = state(8)[0]
    sample.read(8.2, [[one]], revision=one.revision, get=True)
    sample.history.reads[-1].selection = Selection("ns", one.name)
    sample.fail(8.5, 410, version="2")
    sample.fail(8.2, 504, version="20", took=3 * SECOND)


def _watch(sample: Sample, truth: Truth) -> None:
    state = truth.state(_MAPS, EVERYTHING, 6)
    sample.watch(2.5, 8, "2", [*delivered_events(truth, EVERYTHING, 2, 7), bookmark(7, 7.5)])
    sample.watch(2.5, 9.1, "2", delivered_events(truth, RED, 2, 9), selection=RED)
    sample.watch(
        2.5,
        8,
        "4",
        [*delivered_events(truth, EVERYTHING, 4, 6), bookmark(6, 6.5), *delivered_events(truth, EVERYTHING, 6, 7)],
    )
    sample.watch(6.5, 8, "", [*initial(state, 6.6), *delivered_events(truth, EVERYTHING, 6, 7)])
    sample.watch(6.5, 6.9, "0", initial(state, 6.6))
    sample.watch(8.5, 8.6, "2", [Delivery(ERROR, 410, "", "", "Expired", moment(8.6))], ended="clean")
    sample.watch(8, 8.2, "7", delivered_events(truth, EVERYTHING, 7, 8), timeout=2, ended="clean")
    informer = {"informer": "1", "selection": EVERYTHING}
    begins = [*initial(state, 6.6), bookmark(6, 6.6, initial_end=True), *delivered_events(truth, EVERYTHING, 6, 9)]
    sample.watch(6.5, 9.3, "", begins, initial=True, listed=[], ended="cut", **informer)
    sample.watch(9.5, 18.5, "9", [*delivered_events(truth, EVERYTHING, 9, 17), bookmark(17, 18)], **informer)
