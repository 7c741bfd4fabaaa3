"""Tests that a request body with too many values is refused before any value is decoded."""

from __future__ import annotations

import json

import pytest

from ctrlmgr.errors import RequestEntityTooLarge
from ctrlmgr.schema import strict_json
from ctrlmgr.schema.strict_json import MOST_VALUES
from tests.engine.stage import Stage

PODS = "/api/v1/namespaces/shop/pods"
CONTAINERS = b'{"metadata":{"name":"a"},"spec":{"containers":[%b]}}'


def lists(count: int) -> bytes:
    return b"[" + b",".join([b"0"] * count) + b"]"


def test_values_are_counted() -> None:
    strict_json.refuse_many(lists(MOST_VALUES - 1))  # and the list itself
    with pytest.raises(RequestEntityTooLarge, match=f"limit of {MOST_VALUES}"):
        strict_json.refuse_many(lists(MOST_VALUES))


@pytest.mark.parametrize("text", [",", "{", "[", '",', "\\", '\\",', "\\\\,"])
def test_characters_in_strings_are_not_counted_as_values(text: str) -> None:
    strict_json.refuse_many(json.dumps({"a": text * (MOST_VALUES + 1)}).encode())


@pytest.mark.parametrize(
    ("method", "path", "media_type", "body"),
    [
        ("POST", PODS, "application/json", CONTAINERS % b",".join([b"{}"] * MOST_VALUES)),
        ("POST", PODS, "application/yaml", CONTAINERS % b",".join([b"{}"] * MOST_VALUES)),
        ("PATCH", f"{PODS}/a", "application/merge-patch+json", CONTAINERS % b",".join([b"{}"] * MOST_VALUES)),
        ("PATCH", f"{PODS}/a", "application/json-patch+json", lists(MOST_VALUES)),
    ],
)
def test_a_request_with_too_many_values_is_refused(method: str, path: str, media_type: str, body: bytes) -> None:
    stage = Stage()
    stage.namespace("shop")
    pod = {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    assert stage.send("POST", PODS, pod).code == 201
    assert stage.send(method, path, body, media_type=media_type).code == 413
