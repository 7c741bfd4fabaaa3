"""Tests of the controller of ResourcePoolStatusRequests: its answers, retries, deletions and metrics."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from ctrlmgr.controllers.descriptor import NoOptions
from ctrlmgr.controllers.resourcepoolstatusrequest.controller import ERRORS, PROCESSED, REQUESTS, build
from ctrlmgr.engine.features.gates import switch
from ctrlmgr.kinds.builtin import builtin_kinds
from tests.controllers.stage_context import StageContext
from tests.controllers.worked_stage import WorkedStage

GROUP = "/apis/resource.k8s.io"
PATH = f"{GROUP}/v1alpha3/resourcepoolstatusrequests"
SLICES = f"{GROUP}/v1/resourceslices"
CLAIMS = f"{GROUP}/v1/namespaces/a/resourceclaims"
DRIVER = "test.example.com"


class PoolStatusCluster(WorkedStage):
    """A cluster with the controller, and with a namespace for claims."""

    def __init__(self) -> None:
        kinds = builtin_kinds(served=["resource.k8s.io/v1alpha3"])
        super().__init__(lambda stage: build(StageContext(stage), NoOptions()), kinds=kinds)
        self.namespace("a")

    def slice(
        self, name: str, pool: str, devices: int, *, node: str = "n", generation: int = 1, count: int = 1
    ) -> None:
        source = {"name": pool, "generation": generation, "resourceSliceCount": count}
        listed = [{"name": f"d{at}"} for at in range(devices)]
        spec: dict[str, Any] = {"driver": DRIVER, "pool": source, "devices": listed}
        spec |= {"nodeName": node} if node else {"allNodes": True}
        self.create(SLICES, {"metadata": {"name": name}, "spec": spec})

    def claim(self, name: str, *pools: str) -> None:
        wanted = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}}
        self.create(CLAIMS, {"metadata": {"name": name}, "spec": wanted})
        results = [
            {"request": "r", "driver": DRIVER, "pool": pool, "device": f"d{at}"} for at, pool in enumerate(pools)
        ]
        self.patch(f"{CLAIMS}/{name}/status", {"status": {"allocation": {"devices": {"results": results}}}})

    def ask(self, name: str = "r", **spec: Any) -> None:
        self.create(PATH, {"metadata": {"name": name}, "spec": {"driver": DRIVER, **spec}})
        self.work()

    def answer(self, name: str = "r") -> dict[str, Any] | None:
        request = self.stored(REQUESTS, name)
        assert request is not None
        answer: dict[str, Any] | None = request.to_dict().get("status")
        return answer

    def asked(self, **spec: Any) -> dict[str, Any]:
        self.ask(**spec)
        answer = self.answer()
        assert answer is not None
        return answer


@pytest.fixture
def cluster() -> Iterator[PoolStatusCluster]:
    switch({"DRAResourcePoolStatus": True})
    yield PoolStatusCluster()
    switch({})


def test_the_status_counts_the_devices_of_a_pool(cluster: PoolStatusCluster) -> None:
    cluster.slice("s", "pool-1", 4)
    cluster.claim("c", "pool-1", "pool-1", "pool-2")
    answer = cluster.asked()
    (condition,) = answer.pop("conditions")
    assert condition.pop("lastTransitionTime")
    assert condition == {
        "type": "Complete",
        "status": "True",
        "reason": "CalculationComplete",
        "message": "Calculated status for 1 pools",
    }
    counts = {"totalDevices": 4, "allocatedDevices": 2, "availableDevices": 2, "unavailableDevices": 0}
    pool = {"driver": DRIVER, "poolName": "pool-1", "generation": 1, "nodeName": "n", "resourceSliceCount": 1}
    assert answer == {"poolCount": 1, "pools": [{**pool, **counts}]}


@pytest.mark.parametrize(
    ("spec", "count", "shown"),
    [
        ({}, 3, ["pool-1", "pool-2", "pool-3"]),
        ({"limit": 2}, 3, ["pool-1", "pool-2"]),
        ({"poolName": "pool-2"}, 1, ["pool-2"]),
        ({"driver": "other.example.com"}, 0, []),
    ],
)
def test_a_request_selects_pools(
    cluster: PoolStatusCluster, spec: dict[str, Any], count: int, shown: list[str]
) -> None:
    for pool in ("pool-3", "pool-1", "pool-2"):
        cluster.slice(pool, pool, 1)
    answer = cluster.asked(**spec)
    assert (answer["poolCount"], [each["poolName"] for each in answer.get("pools", ())]) == (count, shown)


@pytest.mark.parametrize(("first", "second", "node"), [("n", "n", "n"), ("n", "m", None), ("", "", None)])
def test_a_pool_has_a_node_if_all_its_slices_have_it(
    cluster: PoolStatusCluster, first: str, second: str, node: str | None
) -> None:
    cluster.slice("s", "pool-1", 4, node=first, count=2)
    cluster.slice("t", "pool-1", 3, node=second, count=2)
    (pool,) = cluster.asked()["pools"]
    assert (pool.get("nodeName"), pool["resourceSliceCount"], pool["totalDevices"]) == (node, 2, 7)


def test_only_slices_of_the_newest_generation_count(cluster: PoolStatusCluster) -> None:
    cluster.slice("s", "pool-1", 8, generation=1)
    cluster.slice("t", "pool-1", 4, generation=2)
    (pool,) = cluster.asked()["pools"]
    assert (pool["generation"], pool["totalDevices"], pool["resourceSliceCount"]) == (2, 4, 1)


def test_more_allocated_than_published_devices_leave_none_available(cluster: PoolStatusCluster) -> None:
    cluster.slice("s", "pool-1", 1)
    cluster.claim("c", "pool-1", "pool-1")
    (pool,) = cluster.asked()["pools"]
    assert (pool["allocatedDevices"], pool["availableDevices"]) == (2, 0)


def test_an_incomplete_pool_is_retried_until_all_slices_exist(cluster: PoolStatusCluster) -> None:
    cluster.slice("s", "pool-1", 1, count=2)
    cluster.ask()
    assert cluster.answer() is None
    cluster.slice("t", "pool-1", 1, count=2)
    cluster.pass_by(5)
    answer = cluster.answer()
    assert answer is not None
    assert answer["pools"][0]["totalDevices"] == 2


def test_a_request_is_dropped_after_five_retries(cluster: PoolStatusCluster) -> None:
    cluster.slice("s", "pool-1", 1, count=2)
    cluster.ask()
    for _ in range(5):
        cluster.pass_by(5)
    cluster.slice("t", "pool-1", 1, count=2)
    cluster.pass_by(60)
    assert cluster.answer() is None


def test_an_answer_is_not_written_again(cluster: PoolStatusCluster) -> None:
    first = cluster.asked()
    cluster.slice("s", "pool-1", 1)
    cluster.patch(f"{PATH}/r", {"metadata": {"labels": {"a": "b"}}})
    cluster.pass_by(60)
    assert cluster.answer() == first


def test_answered_requests_are_deleted_after_an_hour(cluster: PoolStatusCluster) -> None:
    cluster.ask("early")
    cluster.pass_by(600)
    cluster.ask("late")
    cluster.pass_by(3000)
    assert cluster.names(REQUESTS) == ["early", "late"]
    cluster.pass_by(600)
    assert cluster.names(REQUESTS) == ["late"]


def test_requests_without_a_status_are_deleted_after_a_day(cluster: PoolStatusCluster) -> None:
    cluster.slice("s", "pool-1", 1, count=2)
    cluster.ask()
    cluster.pass_by(24 * 3600)
    assert cluster.names(REQUESTS) == ["r"]
    cluster.pass_by(600)
    assert cluster.names(REQUESTS) == []


def test_answers_and_failed_writes_are_counted(cluster: PoolStatusCluster) -> None:
    """A generation of 0 is valid in a slice but not in a status, as in Kubernetes, so that the write fails."""
    processed, errors = (each.labels(DRIVER)._value.get() for each in (PROCESSED, ERRORS))
    cluster.ask()
    assert PROCESSED.labels(DRIVER)._value.get() == processed + 1
    assert ERRORS.labels(DRIVER)._value.get() == errors
    cluster.slice("s", "pool-1", 1, generation=0)
    cluster.ask("other")
    assert cluster.answer("other") is None
    assert ERRORS.labels(DRIVER)._value.get() > errors
