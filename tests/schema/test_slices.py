"""Conversion in slices makes of an object what one call makes of it."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from ctrlmgr.errors import BadRequest
from ctrlmgr.schema import slices
from ctrlmgr.schema.codec import JSON, Codec
from ctrlmgr.schema.definitions import Definitions
from tests.robustness.attack import dense
from tests.robustness.attack.siege import SPECIMENS

SIZE = 200


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut what is hardly long."""
    monkeypatch.setattr(slices, "LONG", 3)
    monkeypatch.setattr(slices, "_SLICE", 2)


def kinds() -> Iterator[tuple[str, Codec]]:
    """Yield the path of each kind of the siege, and its codec."""
    for path in SPECIMENS:
        kind = dense.kind_of(path)
        codec = kind.codec
        assert isinstance(codec, Codec)
        yield path, codec


def bodies(path: str) -> Iterator[bytes]:
    """Yield bodies with a few elements in any list or map of a kind, of all sorts."""
    choice = random.Random(1)
    for steps, schema in dense.lists_of(path):
        fields = json.loads(json.dumps(SPECIMENS[path]))
        dense.put(fields, steps, dense.filled(schema, SIZE, choice))
        yield msgspec.json.encode(fields)


def outcome(codec: Codec, body: bytes) -> tuple[Any, bytes]:
    """Return what a body is decoded to, or why not, and how that is written."""
    try:
        decoded = codec.decode(body, JSON)
    except BadRequest as error:
        return str(error), b""
    assert list(decoded.fields)[:2]
    return json.dumps(decoded.fields), codec.encode(decoded.fields)


@pytest.mark.parametrize(("path", "codec"), [pytest.param(*each, id=each[0]) for each in kinds()])
def test_slices_are_what_the_whole_is(path: str, codec: Codec) -> None:
    count = 0
    for body in bodies(path):
        whole = outcome(codec, body)
        with slices.wanted():
            assert outcome(codec, body) == whole, body
        count += 1
    assert count > 2


def test_what_is_converted_stays_as_it_is() -> None:
    codec = dense.kind_of("/api/v1/namespaces/attack/pods").codec
    fields: dict[str, Any] = {"spec": {"containers": [{"name": f"c-{at}"} for at in range(9)]}}
    before = json.dumps(fields)
    with slices.wanted():
        codec.encode(fields)
        assert json.dumps(fields) == before
        fields["spec"]["containers"][7]["name"] = 5
        before = json.dumps(fields)
        with pytest.raises(ValueError, match="name"):
            codec.encode(fields)
        assert json.dumps(fields) == before


def test_a_thread_wants_slices_for_as_long_as_it_says() -> None:
    assert not slices.are_wanted()
    with slices.wanted():
        with slices.wanted():
            assert slices.are_wanted()
        assert slices.are_wanted()
    assert not slices.are_wanted()


def test_only_what_is_long_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slices, "LONG", 5)
    pod = Definitions.builtin().schema("io.k8s.api.core.v1.Pod")
    fields: dict[str, Any] = {
        "metadata": {"finalizers": ["a"] * 9, "ownerReferences": [{}] * 6},
        "spec": {"containers": [{"name": "c", "env": [{"name": "A"}] * 6}, {"args": ["x"] * 9}], "volumes": [{}] * 5},
    }
    assert [(each.way, each.key) for each in slices._cuts_of(pod, fields)] == [
        (("metadata",), "ownerReferences"),
        (("spec", "containers", 0), "env"),
    ]
