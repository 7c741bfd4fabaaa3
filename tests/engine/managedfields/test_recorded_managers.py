"""Tests that our managedFields equal those of Kubernetes 1.36.2, byte for byte, after each write.

The environment variable CTRLMGR_RECORDINGS names the folder with the recordings; the default is the folder beside the
repository. If the folder with the recordings does not exist, the tests use the small recording in `tests/recordings`.
"""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ctrlmgr.engine.managedfields import field_set
from tests.engine.managedfields.stored import CORE, field_manager

BESIDE = Path(os.environ.get("CTRLMGR_RECORDINGS", Path(__file__).parents[3].parent / "shared" / "recordings"))
KEPT = Path(__file__).parents[2] / "recordings"
DELETED_BY = ("deletionTimestamp", "deletionGracePeriodSeconds")
"""Fields that a deletion sets, which have no manager."""
MANAGERS = {
    "Endpoints": field_manager(f"{CORE}.Endpoints"),
    "EndpointSlice": field_manager("io.k8s.api.discovery.v1.EndpointSlice", "discovery.k8s.io/v1"),
    "Event": field_manager(f"{CORE}.Event"),
    "Lease": field_manager("io.k8s.api.coordination.v1.Lease", "coordination.k8s.io/v1"),
    "Pod": field_manager(f"{CORE}.Pod"),
}
"""Kinds whose objects are stored as they are sent; for a Service, the server allocates addresses first."""
CHANGED_ON_CREATION = ("Pod",)
"""Kinds whose objects admission changes when they are created."""


def recordings() -> Iterator[Any]:
    """Yield the path of each recording, with the minimum numbers of writes and of field sets to compare."""
    folder = BESIDE if BESIDE.is_dir() else KEPT
    for name, writes, sets in (("small", 199, 80), ("medium", 3500, 900)):
        if (path := folder / f"{name}.jsonl.gz").exists():
            yield pytest.param(path, writes, sets, id=name)


def objects(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    with gzip.open(path) as lines:
        for line in lines:
            event = msgspec.json.decode(line)
            if "uid" in event["object"]["metadata"]:
                yield event["type"], event["object"]


def entries(of: dict[str, Any]) -> list[dict[str, Any]]:
    return of["metadata"].get("managedFields") or []


def without_entries(of: dict[str, Any]) -> dict[str, Any]:
    return {**of, "metadata": {name: value for name, value in of["metadata"].items() if name != "managedFields"}}


def writes(path: Path) -> Iterator[tuple[dict[str, Any] | None, dict[str, Any]]]:
    """Yield each object that a request wrote, with the previous state of the object; writes of the API server itself
    create no managedFields entries.
    """
    before: dict[str, dict[str, Any]] = {}
    for type_, after in objects(path):
        old = before.get(after["metadata"]["uid"])
        if after["kind"] not in MANAGERS or type_ == "DELETED":
            continue
        before[after["metadata"]["uid"]] = after
        is_deletion = any((old or after)["metadata"].get(name) != after["metadata"].get(name) for name in DELETED_BY)
        if not is_deletion and entries(after) and (old or after["kind"] not in CHANGED_ON_CREATION):
            yield old, after


@pytest.mark.parametrize(("path", "least_writes", "least_sets"), list(recordings()))
def test_every_write_leaves_kubernetes_managed_fields(path: Path, least_writes: int, least_sets: int) -> None:
    count = 0
    for old, new in writes(path):
        manager, wanted = MANAGERS[new["kind"]], msgspec.json.encode(entries(new))
        # The recording does not contain the author of a write, which is one of the later managers.
        results = (
            manager.update(old, without_entries(new), each["manager"], each["time"], each.get("subresource", ""))
            for each in entries(new)
        )
        assert any(msgspec.json.encode(entries(result)) == wanted for result in results), new["metadata"]
        count += 1
    assert count >= least_writes


@pytest.mark.parametrize(("path", "least_writes", "least_sets"), list(recordings()))
def test_every_recorded_field_set_survives_decoding_and_encoding(
    path: Path, least_writes: int, least_sets: int
) -> None:
    seen = {msgspec.json.encode(each["fieldsV1"]) for _, obj in objects(path) for each in entries(obj)}
    for fields in seen:
        assert msgspec.json.encode(field_set.in_order(field_set.decode(msgspec.json.decode(fields)))) == fields
    assert len(seen) >= least_sets
