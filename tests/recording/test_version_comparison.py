"""Tests of the comparison of two versions of our controllers on the same recording."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import pytest

from ctrlmgr.api.object import Object
from ctrlmgr.eventlog import Event, EventType
from ctrlmgr.recording.format import RecordingReader
from ctrlmgr.recording.object_comparison import Difference
from ctrlmgr.recording.replay_stage import RECORDING, open_replay_log
from ctrlmgr.recording.replayer import Replay
from ctrlmgr.recording.version_comparison import DifferenceKind, WriteDifference, compare
from ctrlmgr.recording.virtual_clock import ReplayClock
from tests.recording.samples import SMALL, endpoints, pod

ADDED, MODIFIED, DELETED = EventType
MINE = "system:controller:endpoint-controller"


class Log(NamedTuple):
    """The part of an event log that the comparison reads."""

    events: Sequence[Event]

    def scan(self, *, start: int = 1) -> Iterator[Event]:
        yield from self.events[start - 1 :]


def log(*steps: tuple[EventType, dict[str, Any]]) -> Log:
    """Return a log with pods that are created, and writes of our controllers."""
    events = []
    for revision, (type_, fields) in enumerate(steps, start=1):
        obj = Object.from_dict(fields).at(revision)
        actor = RECORDING.actor if fields["kind"] == "Pod" else MINE
        events.append(Event(revision, 0, type_, obj, 0, actor, "", 0, 0, revision, b""))
    return Log(events)


def put(name: str) -> tuple[EventType, dict[str, Any]]:
    return ADDED, pod(name, "10.0.0.1")


def wrote(label: str, type_: EventType = MODIFIED, **metadata: Any) -> tuple[EventType, dict[str, Any]]:
    fields = endpoints(labels={"says": label})
    fields["metadata"] |= metadata
    return type_, fields


def sliced(name: str, *ips: str) -> tuple[EventType, dict[str, Any]]:
    metadata = {"name": name, "namespace": "shop", "labels": {"kubernetes.io/service-name": "s"}}
    write_difference = [{"addresses": [ip], "conditions": {}} for ip in ips]
    head = {"kind": "EndpointSlice", "apiVersion": "discovery.k8s.io/v1", "metadata": metadata}
    return ADDED, head | {"addressType": "IPv4", "endpoints": write_difference, "ports": []}


def write_difference(
    verdict: DifferenceKind, input: int, revision: int, other: int, *found: Difference
) -> WriteDifference:
    return WriteDifference(verdict, "endpoints", "shop", "s", input, revision, other, found)


P, Q = put("p"), put("q")


@pytest.mark.parametrize(
    ("ours", "theirs", "expected"),
    [
        pytest.param(log(P, wrote("a")), log(P, wrote("a", uid="other")), [], id="the same but for its identity"),
        pytest.param(log(P, wrote("x"), wrote("a")), log(P, wrote("a")), [], id="several writes in a row are one"),
        pytest.param(
            log(P, wrote("a")),
            log(P, wrote("b")),
            [write_difference(DifferenceKind.DIFFERS, 1, 2, 2, Difference(".metadata.labels.says", "b", "a"))],
            id="written otherwise",
        ),
        pytest.param(
            log(P, wrote("a"), Q),
            log(P, Q, wrote("a")),
            [write_difference(DifferenceKind.MOVED, 1, 2, 3)],
            id="at another point",
        ),
        pytest.param(
            log(P, wrote("a"), Q), log(P, Q), [write_difference(DifferenceKind.EXTRA, 1, 2, 0)], id="only here"
        ),
        pytest.param(
            log(P, Q), log(P, Q, wrote("a")), [write_difference(DifferenceKind.MISSING, 2, 0, 3)], id="only there"
        ),
        pytest.param(
            log(P, wrote("a", DELETED)),
            log(P, wrote("a")),
            [
                write_difference(
                    DifferenceKind.DIFFERS, 1, 2, 2, Difference("", Object.from_dict(wrote("a")[1]).to_dict(), None)
                )
            ],
            id="deleted here",
        ),
        pytest.param(
            log(P, wrote("a"), Q, wrote("b")), log(P, wrote("a"), put("odd"), Q, wrote("b")), [], id="other inputs"
        ),
        pytest.param(
            log(P, wrote("a"), put("odd"), Q, wrote("b")), log(P, wrote("a"), Q, wrote("b")), [], id="more inputs"
        ),
        pytest.param(
            log(P, sliced("s-1", "10.0.0.1", "10.0.0.2")),
            log(P, sliced("s-x", "10.0.0.2"), sliced("s-y", "10.0.0.1")),
            [],
            id="slices are named and packed otherwise",
        ),
    ],
)
def test_differences_between_versions(ours: Log, theirs: Log, expected: list[WriteDifference]) -> None:
    found = compare(ours, theirs)
    shown = [each if each.verdict is not DifferenceKind.DIFFERS else bare(each) for each in found.differences]
    assert shown == [bare(each) if each.verdict is DifferenceKind.DIFFERS else each for each in expected]


def bare(found: WriteDifference) -> WriteDifference:
    """Remove the fields that differ between any two objects, such as uids."""
    return found if all(each.path for each in found.differences) else write_difference(found.verdict, found.input, 0, 0)


def test_counts_of_a_comparison() -> None:
    found = compare(log(P, wrote("a"), Q, wrote("b")), log(P, wrote("a")))
    assert (found.inputs, found.other_inputs, found.writes, found.other_writes, found.same) == (2, 1, 2, 1, 1)
    assert json.loads(json.dumps(found.as_json()))["differences"][0]["verdict"] == "extra"


def test_a_version_with_other_labels_of_endpoints_differs(monkeypatch: pytest.MonkeyPatch) -> None:
    def replayed() -> Any:
        clock = ReplayClock()
        into = open_replay_log("memory:", clock)
        Replay(into, clock).run(RecordingReader(SMALL))
        return into

    before = replayed()
    monkeypatch.setattr(
        "ctrlmgr.controllers.endpoints.controller.desired_labels", lambda labels, *, is_headless: {"bad": "1"}
    )
    found = compare(replayed(), before)
    written = [each for each in found.differences if each.resource == "endpoints"]
    assert len(written) > 20
    assert ".metadata.labels.bad" in {
        write_difference.path for each in written for write_difference in each.differences
    }
    assert compare(replayed(), replayed()).differences == ()
