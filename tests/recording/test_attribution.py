"""Tests of how the authors of changes are determined from the managedFields of a real API server."""

from __future__ import annotations

from typing import Any

import pytest

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import ENDPOINTS
from ctrlmgr.eventlog import EventType
from ctrlmgr.recording.attribution import Attribution, Managed, writer_of
from ctrlmgr.recording.format import Change, RecordingReader
from tests.recording.samples import KCM, SMALL, addresses, endpoints, managed

CLIENT = "kubectl"
LATER = "2026-01-01T00:00:05Z"
OURS = managed(KCM, ["metadata labels @", "metadata labels team", "subsets"])
ONE, TWO = addresses(("a", "10.0.0.1")), addresses(("a", "10.0.0.1"), ("b", "10.0.0.2"))


def annotated(*names: str, time: str = "2026-01-01T00:00:00Z") -> Any:
    return managed(CLIENT, ["metadata annotations @", *(f"metadata annotations {name}" for name in names)], time=time)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(None, endpoints(entries=[OURS]), Attribution(KCM), id="created by one manager"),
        pytest.param(None, endpoints(), Attribution(None, False), id="created without a field to own"),
        pytest.param(
            None, endpoints(entries=[OURS, annotated("x")]), Attribution(CLIENT, False), id="there from the start"
        ),
        pytest.param(
            endpoints(entries=[OURS], subsets=ONE),
            endpoints(entries=[managed(KCM, ["subsets"], time=LATER)], subsets=TWO),
            Attribution(KCM),
            id="an entry has a new time",
        ),
        pytest.param(
            endpoints(entries=[OURS]),
            endpoints(entries=[OURS, annotated("x")], annotations={"x": "1"}),
            Attribution(CLIENT),
            id="an entry is new, within the same second",
        ),
        pytest.param(
            endpoints(entries=[OURS], labels={"team": "x"}, subsets=ONE),
            endpoints(
                entries=[managed(KCM, ["subsets"]), managed(CLIENT, ["metadata labels team"], time=LATER)],
                labels={"team": "hacked"},
                subsets=ONE,
            ),
            Attribution(CLIENT),
            id="a client took a field, whose owner lost it",
        ),
        pytest.param(
            endpoints(entries=[OURS, annotated("x")], annotations={"x": "1"}),
            endpoints(entries=[OURS, annotated("x", "y")], annotations={"x": "1", "y": "1"}),
            Attribution(CLIENT),
            id="an entry gained a field within the same second",
        ),
        pytest.param(
            endpoints(entries=[OURS], subsets=ONE),
            endpoints(entries=[OURS], subsets=TWO),
            Attribution(KCM),
            id="the only owner changed a value within the same second",
        ),
        pytest.param(
            endpoints(entries=[OURS, annotated("x")], annotations={"x": "1"}, subsets=ONE),
            endpoints(entries=[OURS, annotated("x")], annotations={"x": "1"}, subsets=TWO),
            Attribution(KCM),
            id="one of two owners changed a value within the same second",
        ),
        pytest.param(
            endpoints(
                entries=[managed(KCM, ["metadata annotations @", "subsets"]), annotated("x")], annotations={"x": "1"}
            ),
            endpoints(
                entries=[managed(KCM, ["metadata annotations @", "subsets"]), annotated("x")], annotations={"x": "2"}
            ),
            Attribution(CLIENT),
            id="owning a map is not owning what is in it",
        ),
        pytest.param(
            endpoints(entries=[OURS], labels={"team": "x"}, subsets=ONE),
            endpoints(entries=[managed(KCM, ["subsets"])], subsets=ONE),
            Attribution(KCM, certain=False),
            id="a field went without a trace",
        ),
        pytest.param(
            endpoints(entries=[OURS, annotated("x")], annotations={"x": "1"}),
            endpoints(entries=[OURS]),
            Attribution(CLIENT, certain=False),
            id="an entry went without a trace",
        ),
        pytest.param(
            endpoints(entries=[managed(KCM, ["subsets"]), managed(KCM, ["subsets"], operation="Apply")], subsets=ONE),
            endpoints(
                entries=[managed(KCM, ["subsets"]), managed(KCM, ["subsets"], operation="Apply", time=LATER)],
                subsets=TWO,
            ),
            Attribution(KCM),
            id="one manager by two operations",
        ),
    ],
)
def test_the_writer_is_identified(old: Any, new: Any, expected: Attribution) -> None:
    before = Managed(Object.from_dict(old)) if old else None
    assert writer_of(before, Managed(Object.from_dict(new))) == expected


def test_a_real_recording_has_few_writers_besides_the_controllers() -> None:
    """In small.jsonl.gz, these changes are the API server's writes of the Endpoints `kubernetes`, and one write of a
    client.
    """
    last: dict[Any, Managed] = {}
    others = []
    for entry in RecordingReader(SMALL):
        if not isinstance(entry, Change) or entry.object.resource != ENDPOINTS:
            continue
        if entry.type is EventType.DELETED:
            del last[entry.object.key]
            continue
        state = Managed(entry.object)
        manager = writer_of(last.get(entry.object.key), state).manager
        if manager != KCM:
            others.append((entry.line, str(entry.object.key), manager))
        last[entry.object.key] = state
    assert others == [
        (8, "default/kubernetes", "kube-apiserver"),
        (21, "default/kubernetes", "python-requests"),
        (23, "default/kubernetes", "kube-apiserver"),
        (31, "default/kubernetes", "kube-apiserver"),
    ]
