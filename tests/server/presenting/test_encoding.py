"""Tests of the encoding of lists, which is done in pieces."""

from __future__ import annotations

import json

import pytest

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Resource
from ctrlmgr.server.presenting import encoding
from ctrlmgr.server.presenting.encoding import ListMeta

THINGS = Resource("", "things")
TYPE_META = encoding.type_meta("Thing", "v1")
HEAD = encoding.list_head("ThingList", "v1", ListMeta(99))


def thing(number: int, data: str = "", *, kind: str = "Thing") -> Object:
    fields = {"kind": kind, "apiVersion": "v1", "metadata": {"name": f"t-{number}", "uid": f"u-{number}"}, "data": data}
    return Object(THINGS, json.dumps(fields, separators=(",", ":")).encode(), number)


@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_a_short_list_is_one_piece(count: int) -> None:
    (whole,) = encoding.items(HEAD, [thing(number) for number in range(1, count + 1)], TYPE_META)
    assert whole.endswith(b"]}\n")
    assert json.loads(whole) == {
        "kind": "ThingList",
        "apiVersion": "v1",
        "metadata": {"resourceVersion": "99"},
        "items": [
            {"metadata": {"name": f"t-{number}", "uid": f"u-{number}", "resourceVersion": str(number)}, "data": ""}
            for number in range(1, count + 1)
        ],
    }


def test_a_long_list_is_encoded_in_pieces_of_bounded_size() -> None:
    objects = [thing(number, "x" * 10_000) for number in range(1, 101)]
    pieces = list(encoding.items(HEAD, objects, TYPE_META))
    assert len(pieces) > 10
    assert max(map(len, pieces)) < 120_000
    assert [item["metadata"]["name"] for item in json.loads(b"".join(pieces))["items"]] == [
        f"t-{number}" for number in range(1, 101)
    ]


@pytest.mark.parametrize("at", [0, 1, 2])
@pytest.mark.parametrize("kind", ["Thing", "Older"])
def test_a_large_item_is_encoded_in_pieces(at: int, kind: str) -> None:
    objects = [thing(number) for number in range(1, 4)]
    objects[at] = thing(9, "x" * 1_000_000, kind=kind)
    for pieces in (
        list(encoding.items(HEAD, objects, TYPE_META)),
        list(encoding.pieces(HEAD, [obj.wire() for obj in objects])),
    ):
        assert max(map(len, pieces)) < 120_000
        named = [item["metadata"]["name"] for item in json.loads(b"".join(pieces))["items"]]
        assert named == [json.loads(obj.wire())["metadata"]["name"] for obj in objects]


def test_a_list_that_ends_at_a_piece_is_complete() -> None:
    for size in (98_000, 98_200, 98_304, 99_000):
        pieces = encoding.items(HEAD, [thing(1, "x" * size)], TYPE_META)
        assert len(json.loads(b"".join(pieces))["items"]) == 1


def test_an_item_with_another_kind_has_no_kind_in_the_list() -> None:
    """An item's own kind and apiVersion are omitted in the list, for example those of an object that was stored before
    its kind moved to another version.
    """
    (whole,) = encoding.items(HEAD, [thing(1), thing(2, kind="Older"), thing(3)], TYPE_META)
    assert [list(item) for item in json.loads(whole)["items"]] == [["metadata", "data"]] * 3


def test_items_of_any_kind_are_encoded_in_equal_pieces() -> None:
    rows = [b'{"row":"%s"}' % (b"x" * 10_000) for _ in range(20)]
    pieces = list(encoding.pieces(HEAD, rows))
    assert len(pieces) > 1
    assert len(json.loads(b"".join(pieces))["items"]) == 20
    assert json.loads(b"".join(encoding.pieces(HEAD, [])))["items"] == []
