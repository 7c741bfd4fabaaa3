from typing import Any

import pytest

from ctrlmgr.engine.validation import name_formats
from ctrlmgr.kinds.core.core_event import EventStrategy, StrictEventStrategy
from tests.kinds.write import create, stored, update

LEGACY = EventStrategy()
STRICT = StrictEventStrategy()
MISMATCH = "does not match event.namespace"
METADATA = {"name": "e", "namespace": "ns"}
OLD_STYLE: dict[str, Any] = {
    "metadata": METADATA,
    "involvedObject": {"kind": "Pod", "namespace": "ns", "name": "p", "uid": "u", "apiVersion": "v1"},
    "reason": "R",
    "message": "m",
    "source": {"component": "kubelet", "host": "h"},
    "firstTimestamp": "2024-01-01T00:00:00Z",
    "lastTimestamp": None,
    "count": 2,
    "type": "Normal",
    "eventTime": None,
}
NEW_STYLE: dict[str, Any] = {
    "metadata": METADATA,
    "involvedObject": {"kind": "Pod", "namespace": "ns", "name": "p"},
    "reason": "R",
    "message": "m",
    "source": {},
    "firstTimestamp": None,
    "lastTimestamp": None,
    "type": "Normal",
    "eventTime": "2024-01-01T00:00:00.000000Z",
    "action": "Binding",
    "reportingComponent": "example.com/controller",
    "reportingInstance": "i",
}


def about(namespace: str) -> dict[str, Any]:
    return {"involvedObject": {"namespace": namespace}}


@pytest.mark.parametrize(
    ("namespace", "involved", "fits"),
    [("ns", "ns", True), ("ns", "other", False), ("ns", "", False), ("default", "", True), ("kube-system", "", False)],
)
def test_a_core_event_has_the_namespace_of_its_object(namespace: str, involved: str, fits: bool) -> None:
    event = {**OLD_STYLE, "metadata": {**METADATA, "namespace": namespace}, **about(involved)}
    expected = [] if fits else [f'involvedObject.namespace: Invalid value: "{involved}": {MISMATCH}']
    assert create(LEGACY, event).messages == expected


@pytest.mark.parametrize("strategy", [LEGACY, STRICT])
@pytest.mark.parametrize(
    ("change", "messages"),
    [
        ({}, []),
        (about("other"), []),
        (about(""), [f'involvedObject.namespace: Invalid value: "": {MISMATCH}']),
        ({"metadata": {**METADATA, "namespace": "kube-system"}, **about("")}, []),
        (
            {"reportingComponent": ""},
            [
                "reportingComponent: Required value",
                *[f'reportingComponent: Invalid value: "": {each}' for each in name_formats.qualified_name("")],
            ],
        ),
        ({"reportingInstance": ""}, ["reportingInstance: Required value"]),
        ({"action": ""}, ["action: Required value"]),
        ({"reason": "r" * 129}, ['reason: Invalid value: "": can have at most 128 characters']),
        ({"message": "m" * 1025}, ['message: Invalid value: "": can have at most 1024 characters']),
    ],
)
def test_an_events_v1_event_must_be_complete(
    strategy: EventStrategy, change: dict[str, Any], messages: list[str]
) -> None:
    called = [each.replace("reportingComponent:", f"{strategy.controller_field}:") for each in messages]
    assert create(strategy, {**NEW_STYLE, **change}).messages == called


@pytest.mark.parametrize(
    ("change", "messages"),
    [
        ({"type": "Odd"}, ['type: Invalid value: "": has invalid value: Odd']),
        ({"firstTimestamp": "2024-01-01T00:00:00Z"}, ['firstTimestamp: Invalid value: "": needs to be unset']),
        ({"lastTimestamp": "2024-01-01T00:00:00Z"}, ['lastTimestamp: Invalid value: "": needs to be unset']),
        ({"count": 1}, ['count: Invalid value: "": needs to be unset']),
        ({"source": {"host": "h"}}, ['source: Invalid value: "": needs to be unset']),
        (
            {"series": {"count": 1, "lastObservedTime": None}},
            [
                'series.count: Invalid value: "": should be at least 2',
                "series.lastObservedTime: Required value",
            ],
        ),
        ({"series": {"count": 2, "lastObservedTime": "2024-01-01T00:00:00.000000Z"}}, []),
    ],
)
def test_checks_of_events_v1_only(change: dict[str, Any], messages: list[str]) -> None:
    assert create(STRICT, {**NEW_STYLE, **change}).messages == messages
    assert create(LEGACY, {**NEW_STYLE, **change}).messages == []


def test_events_v1_requires_a_time() -> None:
    assert "eventTime: Required value" in create(STRICT, OLD_STYLE).messages


@pytest.mark.parametrize(
    ("change", "messages"),
    [
        ({"series": {"count": 2, "lastObservedTime": "2024-01-01T00:00:00.000000Z"}}, []),
        ({"series": {"count": 1, "lastObservedTime": "t"}}, ['series.count: Invalid value: "": should be at least 2']),
        ({"reason": "S"}, ['reason: Invalid value: "S": field is immutable'] * 2),
        ({"reportingComponent": "a.b/c"}, ['reportingController: Invalid value: "a.b/c": field is immutable']),
        ({"source": {"host": "h"}}, ['source: Invalid value: {"Component":"","Host":"h"}: field is immutable']),
        (
            {"related": {"kind": "Node", "name": "n"}},
            [
                'related: Invalid value: {"Kind":"Node","Namespace":"","Name":"n","UID":"","APIVersion":"",'
                '"ResourceVersion":"","FieldPath":""}: field is immutable'
            ],
        ),
        ({"count": 7}, ["count: Invalid value: 7: field is immutable"]),
    ],
)
def test_events_v1_updates_only_the_series(change: dict[str, Any], messages: list[str]) -> None:
    assert update(STRICT, NEW_STYLE, change).messages == messages


def test_core_v1_updates_any_field() -> None:
    assert update(LEGACY, OLD_STYLE, {"reason": "S", "count": 3}).errors == []


@pytest.mark.parametrize("name", ["UPPER.17a", "a_b"])
def test_core_v1_accepts_names_that_events_v1_refuses(name: str) -> None:
    event = {**NEW_STYLE, "metadata": {**METADATA, "name": name}}
    assert create(LEGACY, event).errors == []
    assert create(STRICT, event).errors != []


def test_selectable_fields_of_events() -> None:
    event = stored("v1", "Event", OLD_STYLE)
    assert LEGACY.selectable(event) == {
        "involvedObject.kind": "Pod",
        "involvedObject.namespace": "ns",
        "involvedObject.name": "p",
        "involvedObject.uid": "u",
        "involvedObject.apiVersion": "v1",
        "involvedObject.resourceVersion": "",
        "involvedObject.fieldPath": "",
        "reason": "R",
        "reportingComponent": "",
        "source": "kubelet",
        "type": "Normal",
    }
    assert LEGACY.selectable(stored("v1", "Event", NEW_STYLE))["source"] == "example.com/controller"


def test_events_v1_uses_its_field_names() -> None:
    fields = STRICT.selectable(stored("v1", "Event", NEW_STYLE))
    assert (fields["regarding.name"], fields["reportingController"]) == ("p", "example.com/controller")
    assert set(STRICT.fields) <= set(fields)
    assert set(LEGACY.fields) == set(LEGACY.selectable(stored("v1", "Event", NEW_STYLE)))
