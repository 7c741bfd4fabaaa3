"""Tests of the versions that are never forwarded: those of definitions, and for five minutes those of deleted ones."""

from __future__ import annotations

from typing import Any

import pytest

from ctrlmgr.api.object import Object
from ctrlmgr.server.peers.excluded_versions import GRACE, ExcludedVersions
from ctrlmgr.testing.eventlog_contract import add, remove
from tests.engine.watch_cache.test_cacher import CachedLog

CROPS = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "crops.farm.example", "uid": "1"},
    "spec": {"group": "farm.example", "versions": [{"name": "v1", "served": True}, {"name": "v2", "served": False}]},
}


def api_service(name: str, service: dict[str, Any] | None) -> dict[str, Any]:
    version, _, group = name.partition(".")
    return {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": name, "uid": name},
        "spec": {"group": group, "version": version, **({"service": service} if service else {})},
    }


@pytest.fixture
def cached() -> CachedLog:
    return CachedLog()


def test_versions_of_definitions_and_extension_servers_are_excluded(cached: CachedLog) -> None:
    excluded = ExcludedVersions(cached.cacher, clock=cached.clock)
    assert excluded.epoch == 0
    remote = api_service("v1.remote.example", {"name": "s", "namespace": "n"})
    objects = [CROPS, remote, api_service("v1.apps", None)]
    cached.put(*(add(Object.from_dict(each)) for each in objects))
    assert [("farm.example", "v1") in excluded, ("farm.example", "v2") in excluded] == [True, True]
    assert [("remote.example", "v1") in excluded, ("apps", "v1") in excluded] == [True, False]
    assert excluded.epoch > 0


def test_versions_of_deleted_definitions_stay_excluded_for_a_while(cached: CachedLog) -> None:
    crops = Object.from_dict(CROPS)
    [created] = cached.put(add(crops))
    excluded = ExcludedVersions(cached.cacher, clock=cached.clock)
    cached.put(remove(crops, created.revision))
    cached.clock.step(GRACE - 1)
    excluded.refresh()
    assert ("farm.example", "v1") in excluded
    before = excluded.epoch
    cached.clock.step(1)
    excluded.refresh()
    assert ("farm.example", "v1") not in excluded
    assert excluded.epoch == before + 1
