from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from ctrlmgr.controllers.cluster_authentication.controller import new_cluster_authentication_publisher
from ctrlmgr.controllers.cluster_authentication.decide import ClusterAuthentication
from ctrlmgr.manager import Controller
from tests.authentication.authorities import make, subject
from tests.controllers.worked_stage import WorkedStage

PATH = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"


def an_authority(name: str) -> str:
    begins, ends = datetime(2020, 1, 1, tzinfo=UTC), datetime(2090, 1, 1, tzinfo=UTC)
    return make(subject(name), is_authority=True, begins=begins, ends=ends).pem.decode()


ONE, TWO, PROXY = map(an_authority, ("one", "two", "proxy"))
OURS = ClusterAuthentication(
    client_ca=ONE,
    proxy_ca=PROXY,
    proxy_names=("front-proxy-client",),
    username_headers=("X-Remote-User",),
    uid_headers=("X-Remote-Uid",),
    group_headers=("X-Remote-Group",),
    extra_prefixes=("X-Remote-Extra-",),
)


class Stage(WorkedStage):
    def __init__(self) -> None:
        self.own = OURS
        super().__init__(self.publisher)

    def publisher(self, stage: WorkedStage) -> Controller:
        return new_cluster_authentication_publisher(
            stage.informers,
            stage.engine_client,
            stage.log,
            own=lambda: self.own,
            clock=stage.clock,
            random=stage.random,
        )

    @property
    def data(self) -> dict[str, Any]:
        data: dict[str, Any] = self.send("GET", PATH).body["data"]
        return data


@pytest.fixture
def stage() -> Stage:
    stage = Stage()
    stage.work()  # the namespace does not exist yet
    stage.namespace("kube-system")
    stage.pass_by(2)
    return stage


def test_the_config_map_describes_client_authentication(stage: Stage) -> None:
    data = stage.data
    assert (data["client-ca-file"], data["requestheader-client-ca-file"]) == (ONE, PROXY)
    lists = {key.removeprefix("requestheader-"): json.loads(data[key]) for key in data if not key.endswith("file")}
    assert lists == {
        "allowed-names": ["front-proxy-client"],
        "extra-headers-prefix": ["X-Remote-Extra-"],
        "group-headers": ["X-Remote-Group"],
        "uid-headers": ["X-Remote-Uid"],
        "username-headers": ["X-Remote-User"],
    }


def test_entries_of_other_clients_are_kept(stage: Stage) -> None:
    said = {"client-ca-file": TWO, "requestheader-username-headers": '["X-User"]', "more": "x"}
    stage.patch(PATH, {"data": said})
    stage.work()
    data = stage.data
    assert data["client-ca-file"] == TWO + ONE
    assert json.loads(data["requestheader-username-headers"]) == ["X-User", "X-Remote-User"]
    assert data["more"] == "x"


def test_the_config_map_is_recreated_and_follows_its_files(stage: Stage) -> None:
    stage.delete(PATH)
    stage.work()
    assert stage.data["client-ca-file"] == ONE
    stage.own = ClusterAuthentication(client_ca=ONE + TWO)
    stage.pass_by(61)
    assert stage.data["client-ca-file"] == ONE + TWO


def test_an_expired_authority_is_omitted(stage: Stage) -> None:
    now = datetime.fromtimestamp(stage.clock.now() // 1_000_000, UTC)
    over = make(subject("over"), is_authority=True, begins=now - timedelta(days=9), ends=now - timedelta(days=1))
    stage.patch(PATH, {"data": {"client-ca-file": over.pem.decode()}})
    stage.work()
    assert stage.data["client-ca-file"] == ONE


def test_without_proxies_their_entries_are_omitted() -> None:
    stage = Stage()
    stage.own = ClusterAuthentication(client_ca=ONE)
    stage.namespace("kube-system")
    stage.work()
    assert list(stage.data) == ["client-ca-file"]
