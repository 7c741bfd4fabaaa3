"""Tests of the leader migration: which controllers run under the migration Lease, and when."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from ctrlmgr.errors import SettingsError
from ctrlmgr.framework.remote.leader_migration import (
    LeaderMigration,
    check_alone,
    leader_migration,
    read_leader_migration,
)
from ctrlmgr.settings import load
from ctrlmgr.testing.served import ServerProcess
from tests.framework.served import HttpsCluster, wait_until
from tests.framework.test_run import FAST, LEASE, run

MIGRATION = """\
apiVersion: controllermanager.config.k8s.io/v1
kind: LeaderMigrationConfiguration
leaderName: migration
controllerLeaders:
- {name: endpoints-controller, component: "*"}
- {name: deployment-controller, component: cloud-controller-manager}
- {name: job-controller, component: kube-controller-manager}
- {name: serviceaccount-token-controller, component: "*"}
"""


def written(folder: Path, text: str = MIGRATION) -> Path:
    file = folder / "migration.yaml"
    file.write_text(text)
    return file


def test_controllers_run_under_the_main_or_the_migration_lease_or_elsewhere(tmp_path: Path) -> None:
    migration = read_leader_migration(written(tmp_path))
    names = [*migration.components, "replicaset-controller"]
    assert migration.lease == "migration"
    assert [each for each in names if migration.migrates(each)] == ["endpoints-controller", "job-controller"]
    assert [each for each in names if migration.is_foreign(each)] == ["deployment-controller"]
    assert [each for each in names if migration.is_main(each)] == [
        "serviceaccount-token-controller",
        "replicaset-controller",
    ]


def test_without_a_file_only_controllers_of_clouds_migrate() -> None:
    assert leader_migration(load({"leader_election.migration": "true"}, {}).settings) == LeaderMigration()
    assert LeaderMigration().lease == "cloud-provider-extraction-migration"


@pytest.mark.parametrize("given", [{}, {"leader_election.migration": "true", "leader_election.enabled": "false"}])
def test_a_migration_needs_a_leader_election(given: dict[str, str]) -> None:
    assert leader_migration(load(given, {}).settings) is None


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("leaderName: migration", "resourceLock: leases", "migration.yaml:1: leaderName must be set"),
        ("name: job-controller, ", "", "migration.yaml:7: name must be set"),
        (', component: "*"', "", "migration.yaml:5: component must be set"),
        ("leaderName: migration", "leaderName: m\nresourceLock: endpoints", "Invalid enum value 'endpoints'"),
        ("config.k8s.io/v1", "config.k8s.io/v2", "apiVersion must be "),
    ],
)
def test_an_invalid_file_is_refused(tmp_path: Path, old: str, new: str, problem: str) -> None:
    with pytest.raises(SettingsError, match=problem.replace(".", r"\.")):
        read_leader_migration(written(tmp_path, MIGRATION.replace(old, new, 1)))


def test_a_server_with_its_own_controllers_refuses_a_migration() -> None:
    with pytest.raises(SettingsError, match="--enable-leader-migration needs --kubeconfig"):
        check_alone(load({"leader_election.migration": "true"}, {}).settings)


def test_migrated_controllers_run_only_while_the_process_holds_the_migration_lease(tmp_path: Path) -> None:
    template = {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "web", "image": "web"}]},
    }
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    names = ",".join(f"{each}-controller" for each in ("replicaset", "endpoints", "deployment", "serviceaccount"))
    with ServerProcess(tmp_path, "--database", "memory:", "--api-only") as server:
        cluster = HttpsCluster(server)
        held = {
            "holderIdentity": "cloud",
            "leaseDurationSeconds": 3600,
            "renewTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        }
        cluster.ask("POST", LEASE.rstrip("/"), {"metadata": {"name": "migration"}, "spec": held})
        for kind in ("ReplicaSet", "Deployment"):
            body = {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "web"}, "spec": spec}
            cluster.ask("POST", f"/apis/apps/v1/namespaces/default/{kind.lower()}s", body)
        service = {"metadata": {"name": "web"}, "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}}
        cluster.ask("POST", "/api/v1/namespaces/default/services", service)
        given = ["--enable-leader-migration", f"--leader-migration-config={written(tmp_path)}", *FAST]
        with run(server, "migrating", f"builtin:{names}", *given):
            wait_until(lambda: bool(cluster.ask("GET", "/api/v1/namespaces/default/pods")["items"]))
            assert cluster.ask("GET", f"{LEASE}migration")["spec"]["holderIdentity"] == "cloud"
            assert not cluster.is_served("/api/v1/namespaces/default/endpoints/web")
            released = {"spec": {"holderIdentity": ""}}
            cluster.ask("PATCH", f"{LEASE}migration", released, "application/merge-patch+json")
            wait_until(lambda: cluster.is_served("/api/v1/namespaces/default/endpoints/web"))
        assert cluster.ask("GET", f"{LEASE}migration")["spec"]["holderIdentity"] == ""
        replica_sets = cluster.ask("GET", "/apis/apps/v1/namespaces/default/replicasets")["items"]
        assert [each["metadata"]["name"] for each in replica_sets] == ["web"]
