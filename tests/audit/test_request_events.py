"""Tests of the formats of events in audit backends."""

from __future__ import annotations

import json

import pytest

from ctrlmgr.audit.policy import Level, Stage
from ctrlmgr.audit.request_events import form, portions
from ctrlmgr.authentication.user import User
from ctrlmgr.authorization.authorizer import Decision, Verdict
from tests.audit.records import stage_event


def test_the_old_format_is_a_line_of_text() -> None:
    assert stage_event().text().decode() == (
        '2026-01-02T03:04:05.12Z AUDIT: id="one" stage="ResponseComplete" ip="192.0.2.1" method="create" user="ann"'
        ' groups="\\"dev\\",\\"o\\\\\\"ps\\"" as="<self>" asgroups="<lookup>" user-agent="kubectl \\"x\\""'
        ' namespace="n"'
        ' uri="/api/v1/namespaces/n/configmaps?dryRun=All" response="201"\n'
    )


def test_the_old_format_marks_unknown_values() -> None:
    event = stage_event(stage=Stage.REQUEST_RECEIVED, user=None)
    assert b'user="<none>" groups="<none>"' in event.text()
    assert b'response="<deferred>"' in event.text()
    event.record.impersonated = User("bob", "", ("b",))
    assert b'as="bob" asgroups="\\"b\\""' in event.text()


def test_a_too_large_event_is_sent_without_bodies_and_marked() -> None:
    event = stage_event()
    assert len(event.line) > 2000
    small = form(largest=1000)(event)
    assert small is not None
    said = json.loads(small)
    assert said["annotations"]["audit.k8s.io/truncated"] == "true"
    assert "requestObject" not in said
    assert "responseObject" not in said
    assert "requestObject" in json.loads(form(largest=10_000)(event) or b"")
    assert event.record.annotations == {}, "other backends are told all of it"


def test_authorization_annotations_cannot_be_overwritten() -> None:
    said = {"authorization.k8s.io/decision": "forbid", "hook.example.com/key": "value"}
    record = stage_event(annotations=said).record
    record.verdict = Verdict(Decision.ALLOW, "by a rule")
    assert list(record.annotations.items()) == [
        ("authorization.k8s.io/decision", "allow"),
        ("authorization.k8s.io/reason", "by a rule"),
        ("hook.example.com/key", "value"),
    ]


@pytest.mark.parametrize("level", [Level.METADATA, Level.REQUEST_RESPONSE])
@pytest.mark.parametrize("legacy", [False, True])
def test_an_event_that_is_too_large_without_bodies_is_dropped(level: Level, *, legacy: bool) -> None:
    assert form(legacy=legacy, largest=100)(stage_event(level=level)) is None


def test_a_too_large_list_of_events_is_divided() -> None:
    lines = [b"a" * 4, b"b" * 4, b"c" * 9, b"d", b"e"]
    assert [list(each) for each in portions(lines, 8)] == [lines[:2], lines[2:3], lines[3:]]
    assert list(portions(lines, None)) == [lines]
    assert list(portions([], 8)) == []
