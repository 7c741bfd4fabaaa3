"""A log in which a custom kind is created, changed and deleted; one custom object exists as long as the kind."""

from __future__ import annotations

from contextlib import closing
from random import Random
from typing import Any, NamedTuple

from ctrlmgr.eventlog import open_log
from ctrlmgr.testing import FakeClock
from ctrlmgr.testing.stage import Stage

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = "/apis/example.com/v1/namespaces/shop/widgets"
MERGE = "application/merge-patch+json"
NAMES = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList", "shortNames": ["wd"]}


class WidgetHistory(NamedTuple):
    """The location of the log, and the revisions of the log's events."""

    url: str
    before: int
    """The last revision before the custom kind exists."""
    first: int
    """The revision of a custom object with the defaults of the first schema."""
    second: int
    """The revision of the second schema; the custom object is unchanged."""


def _version(column: str, **properties: Any) -> dict[str, Any]:
    spec = {"type": "object", "default": {}, "properties": properties}
    return {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
        "additionalPrinterColumns": [{"name": column, "type": "string", "jsonPath": f".spec.{column.lower()}"}],
    }


def write(url: str) -> WidgetHistory:
    """Write the history into an empty database, and close the database."""
    clock = FakeClock()
    with closing(open_log(url, clock=clock, random=Random(1), migrate=True)) as log:
        stage = Stage(log=log)
        stage.namespace("shop")
        before = log.head().revision
        first = _version("Color", color={"type": "string", "default": "red"})
        names = {**NAMES, "categories": ["all"]}
        spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [first]}
        definition = {"metadata": {"name": "widgets.example.com"}, "spec": spec}
        assert stage.send("POST", DEFINITIONS, definition).code == 201
        established = {"type": "Established", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
        status = {"status": {"acceptedNames": names, "conditions": [{**established, "reason": "R", "message": "m"}]}}
        where = f"{DEFINITIONS}/widgets.example.com"
        assert stage.send("PATCH", f"{where}/status", status, media_type=MERGE).code == 200
        widget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}}
        assert stage.send("POST", WIDGETS, widget).code == 201
        at_first = log.head().revision
        second = _version("Shape", shape={"type": "string", "default": "round"})
        assert stage.send("PATCH", where, {"spec": {"versions": [second]}}, media_type=MERGE).code == 200
        return WidgetHistory(url, before, at_first, log.head().revision)
