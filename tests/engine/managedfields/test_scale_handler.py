"""Tests of the managers of the field `replicas` in `/scale`, and of the changes that writes make to these managers."""

from __future__ import annotations

from typing import Any

import pytest

from ctrlmgr.engine.managedfields.scale_handler import from_scale, to_scale

REPLICAS = {"apps/v1": ("spec", "replicas"), "apps/v1beta1": ("spec", "replicas"), "none/v1": ()}


def entry(
    manager: str, operation: str, *names: str, version: str = "apps/v1", subresource: str = "", time: str = ""
) -> dict[str, Any]:
    fields: dict[str, Any] = {"f:spec": {f"f:{name}": {} for name in names}}
    result: dict[str, Any] = {"manager": manager, "operation": operation, "apiVersion": version}
    if time:
        result["time"] = time
    result |= {"fieldsType": "FieldsV1", "fieldsV1": fields}
    return result | {"subresource": subresource} if subresource else result


def scale(manager: str, operation: str, *names: str, **other: Any) -> dict[str, Any]:
    return entry(manager, operation, *(names or ("replicas",)), version="autoscaling/v1", **other)


def test_scale_shows_the_manager_of_replicas() -> None:
    object_entries = [
        entry("a", "Apply", "replicas", "selector", time="2024-01-01T00:00:01Z"),
        entry("b", "Apply", "selector"),
        entry("c", "Update", "replicas", version="apps/v1beta1"),
        entry("d", "Update", "replicas", version="odd/v1"),
        entry("e", "Update", "replicas", version="none/v1"),
        entry("f", "Update", "replicas", subresource="scale"),
    ]
    assert to_scale(object_entries, REPLICAS) == [
        scale("a", "Apply", time="2024-01-01T00:00:01Z"),
        scale("c", "Update"),
        scale("f", "Update", subresource="scale"),
    ]


@pytest.mark.parametrize("operation", ["Apply", "Update"])
@pytest.mark.parametrize("taker", ["Apply", "Update"])
def test_scaling_takes_ownership_of_replicas(operation: str, taker: str) -> None:
    before = [entry("test", operation, "replicas", "selector", time="2024-01-01T00:00:01Z")]
    result = from_scale(before, [scale("scale", taker, subresource="scale")], "apps/v1", REPLICAS)
    left = entry("test", operation, "selector", time="2024-01-01T00:00:01Z")
    taken = entry("scale", taker, "replicas", subresource="scale")
    assert sorted(map(str, result)) == sorted(map(str, [left, taken]))


@pytest.mark.parametrize("operation", ["Apply", "Update"])
def test_an_entry_keeps_its_remaining_fields(operation: str) -> None:
    before = [entry("test", operation, "replicas", "selector")]
    shown = [scale("test", operation), scale("other", operation, subresource="scale")]
    result = from_scale(before, shown, "apps/v1", REPLICAS)
    assert result == [entry("other", operation, "replicas", subresource="scale"), *before]


def test_an_empty_entry_is_removed() -> None:
    result = from_scale(
        [entry("a", "Apply", "replicas")], [scale("b", "Update", subresource="scale")], "apps/v1", REPLICAS
    )
    assert result == [entry("b", "Update", "replicas", subresource="scale")]


def test_entries_without_replicas_are_unchanged() -> None:
    before = [entry("a", "Apply", "selector"), entry("n", "Update", "replicas", version="none/v1")]
    shown = [scale("b", "Update", "other", subresource="scale")]
    assert (
        from_scale([*before, entry("x", "Update", "selector", version="odd/v1")], shown, "apps/v1", REPLICAS) == before
    )


def test_malformed_entries_are_refused() -> None:
    with pytest.raises(ValueError, match="apiVersion must not be empty"):
        to_scale([entry("a", "Apply", version="")], REPLICAS)
