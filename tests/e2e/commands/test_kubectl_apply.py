"""Tests of kubectl apply and diff: the client or the server merges the desired state from files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.e2e.kubectl import Kubectl, patch

MAP: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "app", "labels": {"part": "of-it"}},
    "data": {"a": "1"},
}
SERVICE: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "web", "labels": {"part": "of-it"}},
    "spec": {"selector": {"app": "web"}, "ports": [{"name": "http", "port": 80}]},
}
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def both(service: dict[str, Any] = SERVICE, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "List", "items": [{**MAP, "data": data or MAP["data"]}, service]}


def with_ports(*ports: dict[str, Any]) -> dict[str, Any]:
    return {**SERVICE, "spec": {**SERVICE["spec"], "ports": list(ports)}}


def test_apply_creates_and_then_changes_only_differences(kubectl: Kubectl) -> None:
    assert kubectl("apply -f -", both()) == "configmap/app created\nservice/web created\n"
    before = kubectl.get("service web")
    assert kubectl("apply -f -", both()) == "configmap/app unchanged\nservice/web unchanged\n"
    ports = [{"name": "http", "port": 80, "targetPort": "web"}, {"name": "dns", "port": 53, "protocol": "UDP"}]
    changed = both(with_ports(*ports), b="2")
    assert kubectl("apply -f -", changed) == "configmap/app configured\nservice/web configured\n"
    assert kubectl.get("cm app")["data"] == {"b": "2"}
    after = kubectl.get("service web")
    assert after["spec"]["ports"] == [
        {"name": "http", "port": 80, "protocol": "TCP", "targetPort": "web"},
        {"name": "dns", "port": 53, "protocol": "UDP", "targetPort": 53},
    ]
    assert after["spec"]["clusterIP"] == before["spec"]["clusterIP"]
    assert kubectl("apply -f - -o name", both(with_ports({"name": "dns", "port": 53, "protocol": "UDP"}), b="2")) == (
        "configmap/app\nservice/web\n"
    )
    assert [each["name"] for each in kubectl.get("service web")["spec"]["ports"]] == ["dns"]


def test_fields_of_other_clients_are_kept(kubectl: Kubectl) -> None:
    kubectl("apply -f -", MAP)
    kubectl("label configmap app theirs=1")
    kubectl(patch("configmap app", {"data": {"theirs": "2"}}))
    kubectl("apply -f -", {**MAP, "data": {"b": "1"}})
    found = kubectl.get("configmap app")
    assert found["data"] == {"b": "1", "theirs": "2"}
    assert found["metadata"]["labels"] == {"part": "of-it", "theirs": "1"}


def test_dry_runs_change_nothing(kubectl: Kubectl) -> None:
    assert kubectl("apply -f - --dry-run=client", MAP) == "configmap/app created (dry run)\n"
    assert kubectl("apply -f - --dry-run=server", MAP) == "configmap/app created (server dry run)\n"
    kubectl("apply -f -", MAP)
    other = {**MAP, "data": {"b": "2"}}
    assert kubectl("apply -f - --dry-run=server", other) == "configmap/app configured (server dry run)\n"
    assert json.loads(kubectl("apply -f - --dry-run=server -o json", other))["data"] == {"b": "2"}
    assert kubectl("apply -f - --dry-run=server --server-side --force-conflicts", other) == (
        "configmap/app serverside-applied (server dry run)\n"
    )
    assert kubectl.get("configmap app")["data"] == {"a": "1"}


def test_the_last_applied_configuration_can_be_viewed_and_set(kubectl: Kubectl) -> None:
    kubectl("create -f -", MAP)
    assert kubectl.run("apply -f -", MAP).out == "configmap/app configured\n"
    seen = json.loads(kubectl("apply view-last-applied configmap/app -o json"))
    assert (seen["data"], seen["metadata"]["labels"]) == (MAP["data"], MAP["metadata"]["labels"])
    other = {**MAP, "data": {"b": "2"}}
    assert kubectl("apply set-last-applied -f -", other) == "configmap/app configured\n"
    annotation = kubectl.get("configmap app")["metadata"]["annotations"][LAST_APPLIED]
    assert json.loads(annotation)["data"] == {"b": "2"}


def test_the_last_applied_configuration_can_be_edited(kubectl: Kubectl, editor: str) -> None:
    kubectl("apply -f -", {**MAP, "data": {"a": "one"}})
    told = kubectl("apply edit-last-applied configmap/app", KUBE_EDITOR=editor)
    assert told == "configmap/app edited\n"
    assert json.loads(kubectl("apply view-last-applied configmap/app -o json"))["data"] == {"a": "two"}
    assert kubectl.get("configmap app")["data"] == {"a": "one"}


def test_prune_deletes_removed_objects(kubectl: Kubectl) -> None:
    flag = "--prune-allowlist" if kubectl.minor >= 26 else "--prune-whitelist"
    prune = f"--prune -l part=of-it {flag}=core/v1/Service {flag}=core/v1/ConfigMap"
    kubectl("create service clusterip stays --tcp=80")
    kubectl(f"apply -f - {prune}", both())
    assert kubectl(f"apply -f - {prune}", MAP).splitlines() == ["configmap/app unchanged", "service/web pruned"]
    assert kubectl("get services,configmaps -o name") .split() == [
        "service/stays", "configmap/app", "configmap/kube-root-ca.crt",
    ]  # fmt: skip


def test_apply_sets_are_pruned(kubectl: Kubectl) -> None:
    kubectl.since(27)
    prune = "apply -f - --prune --applyset=secrets/parts"
    made = kubectl(prune, both(), KUBECTL_APPLYSET="true")
    assert made == "configmap/app created\nservice/web created\n"
    kept = kubectl(prune, MAP, KUBECTL_APPLYSET="true")
    assert kept == "configmap/app unchanged\nservice/web pruned\n"
    part = kubectl.get("configmap app")["metadata"]["labels"]["applyset.kubernetes.io/part-of"]
    assert kubectl.get("secret parts")["metadata"]["labels"]["applyset.kubernetes.io/id"] == part


def test_files_are_applied_in_order(kubectl: Kubectl, tmp_path: Path) -> None:
    (tmp_path / "1.json").write_text(json.dumps(SERVICE))
    (tmp_path / "2.yaml").write_text(json.dumps(MAP))
    assert kubectl(f"apply -f {tmp_path}") == "service/web created\nconfigmap/app created\n"
    (tmp_path / "kustomization.yaml").write_text("namePrefix: my-\nresources: [2.yaml]\n")
    assert kubectl(f"apply -k {tmp_path}") == "configmap/my-app created\n"


def test_server_side_apply_works(kubectl: Kubectl) -> None:
    assert kubectl("apply --server-side -f -", both()) == (
        "configmap/app serverside-applied\nservice/web serverside-applied\n"
    )
    revision = kubectl.get("configmap app")["metadata"]["resourceVersion"]
    assert kubectl("apply --server-side -f -", MAP) == "configmap/app serverside-applied\n"
    assert kubectl.get("configmap app")["metadata"]["resourceVersion"] == revision
    kubectl("apply --server-side -f -", {**MAP, "data": {"b": "2"}})
    assert kubectl.get("configmap app")["data"] == {"b": "2"}
    kubectl("apply --server-side -f - --field-manager=other", {**MAP, "data": {"c": "3"}})
    assert kubectl.get("configmap app")["data"] == {"b": "2", "c": "3"}


def test_conflicts_are_reported_and_can_be_forced(kubectl: Kubectl) -> None:
    kubectl("apply --server-side -f -", MAP)
    theirs = {**MAP, "data": {"a": "2"}}
    told = kubectl.fails("apply --server-side -f - --field-manager=other", theirs)
    assert told.startswith('error: Apply failed with 1 conflict: conflict with "kubectl": .data.a\n')
    assert kubectl.get("configmap app")["data"] == {"a": "1"}
    kubectl("apply --server-side -f - --field-manager=other --force-conflicts", theirs)
    told = kubectl.fails("apply --server-side -f -", MAP)
    assert told.startswith('error: Apply failed with 1 conflict: conflict with "other": .data.a\n')


def managers(kubectl: Kubectl) -> list[tuple[str, str]]:
    flag = "--show-managed-fields" if kubectl.minor >= 21 else ""
    entries = json.loads(kubectl(f"get cm app -o json {flag}"))["metadata"]["managedFields"]
    return sorted((each["manager"], each["operation"]) for each in entries)


def test_fields_migrate_from_client_side_to_server_side_apply(kubectl: Kubectl) -> None:
    kubectl.since(26)  # older versions of kubectl leave the fields with both managers
    kubectl("apply -f -", MAP)
    assert managers(kubectl) == [("kubectl-client-side-apply", "Update")]
    kubectl("apply --server-side -f -", {**MAP, "data": {"b": "2"}})
    assert kubectl.get("configmap app")["data"] == {"b": "2"}
    assert ("kubectl", "Apply") in managers(kubectl)
    assert ("kubectl-client-side-apply", "Update") not in managers(kubectl)


def test_an_edited_object_is_applied_server_side(kubectl: Kubectl) -> None:
    kubectl("apply --server-side -f -", MAP)
    kubectl(patch("configmap app", {"data": {"a": "9"}}))
    told = kubectl.fails("apply --server-side -f -", MAP)
    assert 'conflict with "kubectl-patch"' in told
    kubectl("apply --server-side --force-conflicts -f -", MAP)
    assert kubectl.get("configmap app")["data"] == {"a": "1"}


def test_diff_shows_the_changes_of_an_apply(kubectl: Kubectl) -> None:
    new = kubectl.run("diff -f -", both())
    assert new.code == 1
    assert "+  clusterIP: 10.96." in new.out
    kubectl("apply -f -", both())
    assert kubectl.run("diff -f -", both()) == (0, "", "")
    done = kubectl.run("diff -f -", both(with_ports({"name": "http", "port": 81}), a="1", b="2"))
    assert done.code == 1
    changes = ['+  b: "2"', "-    port: 80", "+    port: 81", "-    targetPort: 80", "+    targetPort: 81"]
    assert set(changes) <= set(done.out.splitlines())
    assert kubectl.get("service web")["spec"]["ports"][0]["port"] == 80


def test_diff_shows_the_changes_of_a_server_side_apply(kubectl: Kubectl) -> None:
    kubectl("apply --server-side -f -", MAP)
    assert kubectl.run("diff --server-side -f -", MAP) == (0, "", "")
    done = kubectl.run("diff --server-side -f -", {**MAP, "data": {"a": "2"}})
    assert done.code == 1
    assert '-  a: "1"\n+  a: "2"' in done.out


def test_a_concurrent_change_is_not_overwritten(kubectl: Kubectl) -> None:
    kubectl("apply --server-side -f -", MAP)
    stale = kubectl.get("configmap app")["metadata"]["resourceVersion"]
    kubectl("label configmap app x=y")
    changed = {**MAP, "metadata": {"name": "app", "resourceVersion": stale}}
    assert kubectl.fails("apply --server-side -f -", changed).startswith(  # otherwise kubectl would try five times
        'error: Operation cannot be fulfilled on configmaps "app": the object has been modified; '
        "please apply your changes to the latest version and try again\n"
    )


def test_apply_requires_names(kubectl: Kubectl) -> None:
    drawn = {**MAP, "metadata": {"generateName": "app-"}}
    assert kubectl.fails("apply -f -", drawn).endswith("from app-: cannot use generate name with apply\n")
