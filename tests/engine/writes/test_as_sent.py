from __future__ import annotations

from typing import Any

import pytest

from ctrlmgr.api.field import FoundErrors, invalid, required
from ctrlmgr.engine.request_options import Body
from ctrlmgr.engine.writes.empty_error_values import restore_empty_values
from tests.engine.stage import Stage

SENT = b'{"spec":{"l":[],"m":{},"rows":[{"values":[]}],"by":{"a.b/c":[]},"none":null,"full":[1]}}'


@pytest.mark.parametrize(
    ("field", "shown"),
    [
        ("spec.l", "[]"),
        ("spec.m", "{}"),
        ("spec.rows[0].values", "[]"),
        ("spec.by[a.b/c]", "[]"),
        ("spec.none", "null"),
        ("spec.full", "null"),
        ("spec.rows[1].values", "null"),
        ("spec.other.field", "null"),
    ],
)
def test_empty_values_are_returned_as_sent(field: str, shown: str) -> None:
    errors = FoundErrors([invalid(field, None, "null is wrong"), required(field)])
    told = restore_empty_values(errors, Body("application/json", SENT))
    assert [each.body for each in told] == [f"Invalid value: {shown}: null is wrong", "Required value"]
    assert isinstance(told, FoundErrors)


@pytest.mark.parametrize("body", [None, Body("application/yaml", b"spec: {l: []}"), Body("application/json", b"{")])
def test_without_json_nothing_is_restored(body: Body | None) -> None:
    (error,) = restore_empty_values([invalid("spec.l", None, "x")], body)
    assert error.body == "Invalid value: null: x"


def test_a_definition_without_versions_shows_its_conversion() -> None:
    stage = Stage()
    spec = {"group": "b.c", "scope": "Cluster", "names": {"plural": "as", "kind": "A"}}
    shown = []
    ways: list[dict[str, list[Any]]] = [{"versions": []}, {}]
    for versions in ways:
        body = {"metadata": {"name": "as.b.c"}, "spec": {**spec, **versions}}
        response = stage.send("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", body)
        shown.append(response.body["details"]["causes"][0]["message"].partition(": must")[0])
    assert shown == ["Invalid value: []", "Invalid value: null"]
