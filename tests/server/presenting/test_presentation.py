"""Tests of objects in the forms of PartialObjectMetadata and of table rows."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Resource
from ctrlmgr.engine.kind import Kind
from ctrlmgr.engine.operations import Listing
from ctrlmgr.engine.tables.table_printer import Column
from ctrlmgr.errors import BadRequest, NotAcceptable
from ctrlmgr.server.presenting.negotiation import AS_IS, Form
from ctrlmgr.server.presenting.presentation import Partial, Plain, Presentations
from ctrlmgr.server.presenting.tabular import Table, parse_include
from ctrlmgr.testing import FakeClock
from tests.engine.stage import builtin_kinds

CONFIG_MAPS = Resource("", "configmaps")
METADATA = {"name": "a", "namespace": "n", "uid": "u", "resourceVersion": "3", "labels": {"x": "<y>"}}
BODY = (
    b'{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","namespace":"n","uid":"u","labels":{"x":"<y>"}},'
    b'"data":{"k":"v"}}'
)
OBJ = Object(CONFIG_MAPS, BODY, 3)
LISTING = Listing(9, [OBJ], "next", 2)
PARTIAL = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": METADATA}


class Definition:
    """A table with two columns: the name and the creation time."""

    columns = (Column("Name", format="name", description="The name."), Column("Now", "integer", priority=1))
    conditions = None

    def cells(self, obj: Object, now: int) -> Sequence[Any]:
        return ["<none>" if obj.name == "b" else obj.name, now]


def config_maps() -> Kind:
    kind = builtin_kinds().find("", "v1", "configmaps")
    assert kind is not None
    return kind


def table(include: str = "", version: str = "v1") -> Table:
    return Table(config_maps(), Form("Table", version), Definition(), include, FakeClock(7))


def partial(kind: str) -> Partial:
    return Partial(config_maps(), Form(kind, "v1"))


def test_one_object_is_reduced_to_its_metadata() -> None:
    assert json.loads(partial("PartialObjectMetadata").one(OBJ)) == PARTIAL


def test_a_list_is_reduced_to_its_metadata() -> None:
    listed = json.loads(b"".join(partial("PartialObjectMetadataList").list(LISTING)))
    assert listed["kind"] == "PartialObjectMetadataList"
    assert listed["apiVersion"] == "meta.k8s.io/v1"
    assert listed["metadata"] == {"resourceVersion": "9", "continue": "next", "remainingItemCount": 2}
    assert listed["items"] == [PARTIAL]


def test_a_list_is_no_single_object_and_vice_versa() -> None:
    with pytest.raises(NotAcceptable, match=r"is a list \(\*core\.ConfigMapList\)"):
        partial("PartialObjectMetadata").list(LISTING)
    with pytest.raises(NotAcceptable, match=r"is not a list \(\*core\.ConfigMap\)"):
        partial("PartialObjectMetadataList").one(OBJ)


def test_watches_of_metadata_have_bookmarks_of_metadata() -> None:
    shown = partial("PartialObjectMetadata")
    assert json.loads(shown.frame("ADDED", OBJ)) == {"type": "ADDED", "object": PARTIAL}
    assert json.loads(shown.bookmark(4))["object"]["kind"] == "PartialObjectMetadata"
    assert shown.following is shown


def test_a_table_has_one_row_for_one_object() -> None:
    assert table().one(OBJ) == (
        b'{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"3"},"columnDefinitions":['
        b'{"name":"Name","type":"string","format":"name","description":"The name.","priority":0},'
        b'{"name":"Now","type":"integer","format":"","description":"","priority":1}],'
        b'"rows":[{"cells":["a",7],"object":{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1",'
        b'"metadata":{"name":"a","namespace":"n","uid":"u","resourceVersion":"3","labels":{"x":"<y>"}}}}]}\n'
    )


@pytest.mark.parametrize(
    ("include", "expected"),
    [("None", None), ("Metadata", PARTIAL), ("Object", {**json.loads(BODY), "metadata": METADATA})],
)
def test_rows_contain_the_requested_part_of_their_objects(include: str, expected: Any) -> None:
    listed = json.loads(b"".join(table(include).list(LISTING)))
    assert [row["object"] for row in listed["rows"]] == [expected]
    assert listed["metadata"]["remainingItemCount"] == 2


def test_cells_are_formatted_like_go() -> None:
    body = BODY.replace(b'"name":"a"', b'"name":"b"')
    assert rb'"cells":["\u003cnone\u003e",7]' in table().one(Object(CONFIG_MAPS, body, 3))


def test_only_the_first_frame_has_the_columns() -> None:
    first = table()
    assert len(json.loads(first.frame("ADDED", OBJ))["object"]["columnDefinitions"]) == 2
    assert json.loads(first.following.frame("ADDED", OBJ))["object"]["columnDefinitions"] is None
    assert first.following.following is first.following


def test_a_bookmark_is_a_table() -> None:
    event = json.loads(table().bookmark(8, initial_events_end=True))
    assert event["object"]["kind"] == "Table"
    assert event["object"]["metadata"] == {"resourceVersion": "8"}
    assert event["object"]["rows"][0]["object"]["metadata"]["resourceVersion"] == "8"


def test_the_old_version_of_a_table_is_supported() -> None:
    assert json.loads(table(version="v1beta1").one(OBJ))["apiVersion"] == "meta.k8s.io/v1beta1"


def test_an_unknown_include_is_refused() -> None:
    with pytest.raises(BadRequest) as refused:
        parse_include({"includeObject": ["All"]})
    assert str(refused.value) == (
        'Unable to convert to Table as requested: includeObject: Invalid value: "All": '
        "must be 'Metadata', 'Object', 'None', or empty"
    )


def test_presentations_are_built_once() -> None:
    presentations = Presentations(FakeClock())
    kind = config_maps()
    table_form = Form("Table", "v1")
    assert isinstance(presentations.of(kind, kind.gvk), Plain)
    assert presentations.of(kind, kind.gvk) is presentations.of(kind, kind.gvk, AS_IS)
    assert presentations.of(kind, kind.gvk, table_form) is not presentations.of(kind, kind.gvk, table_form, "None")
