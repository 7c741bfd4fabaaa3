"""Tests that our Endpoints equal those of Kubernetes 1.36.2 for recorded Services and pods, including the order of
lists.

The environment variable CTRLMGR_RECORDINGS names the folder with the recordings; the default is the folder beside the
repository. If the folder with the recordings does not exist, the tests use the small recording in `tests/recordings`.
"""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from ctrlmgr.api.core import Pod, Service
from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import ENDPOINTS, PODS, SERVICES
from ctrlmgr.controllers.endpoints.controller import MANAGED_BY, desired_endpoints
from ctrlmgr.informer import Store

BESIDE = Path(os.environ.get("CTRLMGR_RECORDINGS", Path(__file__).parents[3].parent / "shared" / "recordings"))
KEPT = Path(__file__).parents[2] / "recordings"


def recordings() -> Iterator[Any]:
    """Yield the path of each recording, with the minimum number of objects to compare."""
    folder = BESIDE if BESIDE.is_dir() else KEPT
    for name, least in (("small", 60), ("medium", 2900)):
        if (path := folder / f"{name}.jsonl.gz").exists():
            yield pytest.param(path, least, id=name)


class _Line(msgspec.Struct):
    type: str
    object: msgspec.Raw


class _Kind(msgspec.Struct):
    kind: str
    metadata: dict[str, Any]


class Recorded(NamedTuple):
    """The caches of the controller at a checkpoint of the recording."""

    checkpoint: str
    services: Store
    pods: Store
    endpoints: Store


def checkpoints(path: Path) -> Iterator[Recorded]:
    stores = {resource: Store() for resource in (SERVICES, PODS, ENDPOINTS)}
    stores[PODS].add_label_index()
    kinds = {"Service": SERVICES, "Pod": PODS, "Endpoints": ENDPOINTS}
    with gzip.open(path, "rb") as lines:
        for text in lines:
            line = msgspec.json.decode(text, type=_Line)
            head = msgspec.json.decode(line.object, type=_Kind)
            if head.kind == "Checkpoint":
                yield Recorded(head.metadata["name"], stores[SERVICES], stores[PODS], stores[ENDPOINTS])
            elif resource := kinds.get(head.kind):
                obj = Object.from_wire(line.object)
                stores[resource].apply(obj.key, None if line.type == "DELETED" else obj)


def is_a_clients(recorded: dict[str, Any]) -> bool:
    """Return whether a client made the last write; the missing label of the manager may be the only sign of such a
    write.
    """
    metadata = recorded["metadata"]
    return metadata["managedFields"][-1]["manager"] != "kube-controller-manager" or MANAGED_BY not in metadata["labels"]


@pytest.mark.parametrize(("path", "least"), list(recordings()))
def test_every_recorded_endpoints_object_equals_the_desired_one(path: Path, least: int) -> None:
    compared = 0
    for at in checkpoints(path):
        for service in at.services.list():
            view = service.view(Service)
            if not view.selects_endpoints:
                continue
            found = at.endpoints.get(service.key)
            assert found is not None, f"{at.checkpoint}: {service.key} has no recorded Endpoints"
            recorded = found.to_dict()
            if is_a_clients(recorded):
                continue
            pods = [pod.view(Pod) for pod in at.pods.list(service.namespace, view.spec.selector)]
            desired = desired_endpoints(service, pods, None)
            assert desired is not None
            ours = desired.to_dict()
            where = f"{at.checkpoint}: {service.key}"
            assert ours.get("subsets") == recorded.get("subsets"), where
            assert ours["metadata"]["labels"] == recorded["metadata"]["labels"], where
            assert desired_endpoints(service, pods, found) is None, f"{where} would be written again"
            compared += 1
    assert compared >= least
