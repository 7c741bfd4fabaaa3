"""Tests of the priority with which changes are enqueued."""

from __future__ import annotations

from typing import Any

import pytest

from ctrlmgr.api.object import Object
from ctrlmgr.eventlog import EventType
from ctrlmgr.informer import Change
from ctrlmgr.manager import priority_of
from ctrlmgr.workqueue import CHANGE, LOW, URGENT

DELETED: dict[str, Any] = {"deletionTimestamp": "2026-01-01T00:00:00Z"}


def thing(revision: int, generation: int = 1, **metadata: Any) -> Object:
    fields = {"name": "a", "namespace": "default", "generation": generation, **metadata}
    found = Object.from_dict({"kind": "Deployment", "apiVersion": "apps/v1", "metadata": fields})
    return found.at(revision)


OLD, SAME, CHANGED, EDITED, TERMINATING = thing(1), thing(1), thing(2), thing(2, 2), thing(2, **DELETED)


@pytest.mark.parametrize(
    ("change", "priority"),
    [
        pytest.param(Change(EventType.ADDED, None, OLD, 1, is_listed=True), LOW, id="an object of an initial list"),
        pytest.param(Change(EventType.MODIFIED, OLD, SAME, 1), LOW, id="a resync without a difference"),
        pytest.param(Change(EventType.ADDED, None, OLD, 1), CHANGE, id="a new object"),
        pytest.param(Change(EventType.MODIFIED, OLD, CHANGED, 2, is_request=True), CHANGE, id="a status"),
        pytest.param(Change(EventType.MODIFIED, OLD, EDITED, 2, is_request=True), URGENT, id="an edit by a user"),
        pytest.param(Change(EventType.MODIFIED, OLD, EDITED, 2), CHANGE, id="a new spec from a reconcile"),
        pytest.param(Change(EventType.MODIFIED, OLD, TERMINATING, 2), URGENT, id="a deletion that was requested"),
        pytest.param(Change(EventType.DELETED, OLD, None, 2), URGENT, id="a deletion"),
        pytest.param(Change(EventType.ADDED, None, TERMINATING, 2, is_listed=True), LOW, id="terminating, in a list"),
    ],
)
def test_the_priority_of_a_change(change: Change, priority: int) -> None:
    assert priority_of(change) == priority
