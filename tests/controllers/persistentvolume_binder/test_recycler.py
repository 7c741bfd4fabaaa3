"""Tests of the reclaim policy Recycle: a pod deletes the content of a volume."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ctrlmgr.api.resource import PODS
from ctrlmgr.controllers.persistentvolume_binder import Options
from ctrlmgr.controllers.persistentvolume_binder.recycler_pods import recycler_pods
from ctrlmgr.errors import SettingsError
from tests.controllers.persistentvolume_binder.test_volume_binder import BY_CONTROLLER, BinderCluster

HOST = {"hostPath": {"path": "/data/v", "type": "Directory"}}


def released(cluster: BinderCluster, size: str = "1Gi", **spec: Any) -> None:
    """Release a volume `v` with the reclaim policy Recycle."""
    cluster.volume("v", size, source=HOST, persistentVolumeReclaimPolicy="Recycle", **spec)
    cluster.claim("one")
    cluster.drop_claim("one")


@pytest.fixture
def cluster() -> BinderCluster:
    cluster = BinderCluster()
    cluster.stage.namespace("default")
    return cluster


def pod(cluster: BinderCluster, name: str = "recycler-for-v") -> dict[str, Any] | None:
    found = cluster.stage.stored(PODS, name, "default")
    return None if found is None else found.to_dict()


def end(cluster: BinderCluster, phase: str, **status: Any) -> None:
    cluster.patch("namespaces/default/pods/recycler-for-v/status", {"status": {"phase": phase, **status}})


def test_a_pod_recycles_the_volume_which_is_then_available(cluster: BinderCluster) -> None:
    released(cluster)
    found = pod(cluster)
    assert found is not None
    assert found["spec"]["volumes"][0] == {"name": "vol", "hostPath": {"path": "/data/v", "type": ""}}
    assert found["spec"]["activeDeadlineSeconds"] == 60
    assert found["spec"]["containers"][0]["args"][1].startswith("test -e /scrub && find /scrub -mindepth 1 -delete")
    assert cluster.of("v")["status"]["phase"] == "Released"
    end(cluster, "Running")
    assert cluster.of("v")["status"]["phase"] == "Released"
    end(cluster, "Succeeded")
    assert pod(cluster) is None
    assert cluster.of("v")["status"]["phase"] == "Available"
    assert "claimRef" not in cluster.of("v")["spec"]
    assert BY_CONTROLLER not in (cluster.of("v")["metadata"].get("annotations") or {})
    assert ("VolumeRecycled", "Volume recycled") in cluster.events()


def test_a_volume_that_a_user_reserved_keeps_the_name_of_its_claim(cluster: BinderCluster) -> None:
    released(cluster, claimRef={"namespace": "a", "name": "one"})
    end(cluster, "Succeeded")
    reference = cluster.of("v")["spec"]["claimRef"]
    assert (reference["namespace"], reference["name"]) == ("a", "one")
    assert "uid" not in reference
    assert cluster.of("v")["status"]["phase"] == "Available"


@pytest.mark.parametrize(
    ("status", "problem"),
    [
        ({}, "pod failed, pod.Status.Message unknown"),
        ({"message": "the deadline has passed"}, "the deadline has passed"),
    ],
)
def test_a_failed_pod_fails_the_volume_until_a_retry_succeeds(
    cluster: BinderCluster, status: dict[str, str], problem: str
) -> None:
    released(cluster)
    end(cluster, "Failed", **status)
    message = f"Recycle failed: failed to recycle volume: {problem}"
    assert cluster.of("v")["status"] == {**cluster.of("v")["status"], "phase": "Failed", "message": message}
    assert ("VolumeFailedRecycle", message) in cluster.events()
    end(cluster, "Succeeded")
    assert cluster.of("v")["status"]["phase"] == "Available"


def test_a_deleted_pod_fails_the_volume(cluster: BinderCluster) -> None:
    released(cluster)
    cluster.delete("namespaces/default/pods/recycler-for-v")
    assert cluster.of("v")["status"]["message"] == (
        "Recycle failed: failed to recycle volume: recycler pod was deleted"
    )


def test_an_old_pod_with_the_name_is_deleted_first(cluster: BinderCluster) -> None:
    body = {"metadata": {"name": "recycler-for-v"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    cluster.stage.create("/api/v1/namespaces/default/pods", body)
    released(cluster)
    assert cluster.of("v")["status"]["message"] == "Recycle failed: old recycler pod found, will retry later"
    found = pod(cluster)
    assert found is not None
    assert found["spec"]["containers"][0]["name"] == "pv-recycler"


def test_a_volume_in_use_waits(cluster: BinderCluster) -> None:
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "one"}}]
    spec = {"containers": [{"name": "c", "image": "i"}], "volumes": volumes}
    cluster.stage.create("/api/v1/namespaces/a/pods", {"metadata": {"name": "p"}, "spec": spec})
    released(cluster)
    assert cluster.events()[-1] == ("VolumeFailedRecycle", "Volume is used by pods: a/p")
    assert pod(cluster) is None
    cluster.patch("namespaces/a/pods/p/status", {"status": {"phase": "Succeeded"}})
    cluster.stage.pass_by(15)
    assert pod(cluster) is not None


@pytest.mark.parametrize(("size", "limit"), [("1Gi", 60), ("2500Mi", 60), ("10Gi", 300)])
def test_the_time_limit_grows_with_the_volume(cluster: BinderCluster, size: str, limit: int) -> None:
    released(cluster, size)
    found = pod(cluster)
    assert found is not None
    assert found["spec"]["activeDeadlineSeconds"] == limit


def test_a_template_replaces_the_pod(tmp_path: Path) -> None:
    file = tmp_path / "pod.yaml"
    file.write_text(
        "{kind: Pod, apiVersion: v1, metadata: {namespace: ops, labels: {a: b}}, "
        "spec: {containers: [], volumes: [{name: data, emptyDir: {}}]}}"
    )
    options = Options(pv_recycler_pod_template_filepath_nfs=str(file), pv_recycler_minimum_timeout_nfs=7)
    volume = {"metadata": {"name": "v"}, "spec": {"nfs": {"server": "s", "path": "/p", "readOnly": True}}}
    assert recycler_pods(options)["nfs"].pod(volume, "nfs") == {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {"namespace": "ops", "labels": {"a": "b"}, "name": "recycler-for-v"},
        "spec": {
            "containers": [],
            "volumes": [{"name": "data", "nfs": {"server": "s", "path": "/p"}}],
            "activeDeadlineSeconds": 7,
        },
    }


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{kind: Pod, apiVersion: v1, spec: {}}", "does not contain any volume(s)"),
        ("{kind: Service, apiVersion: v1}", "must be a Pod of v1"),
    ],
)
def test_an_invalid_template_is_refused(tmp_path: Path, text: str, problem: str) -> None:
    file = tmp_path / "pod.yaml"
    file.write_text(text)
    with pytest.raises(SettingsError, match=r"pod\.yaml") as refused:
        recycler_pods(Options(pv_recycler_pod_template_filepath_hostpath=str(file)))
    assert problem in str(refused.value)
