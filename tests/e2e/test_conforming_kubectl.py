"""Kubernetes' conformance tests of kubectl that need running pods (sig-cli), and its conformance tests of discovery."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.kubectl import Kubectl, find_kubectl, patch, squeezed
from tests.e2e.serving import Server, until

AGNHOST = "registry.k8s.io/e2e-test-images/agnhost:2.59"
BUSYBOX = "registry.k8s.io/e2e-test-images/busybox:1.37.0-1"
HTTPD = "registry.k8s.io/e2e-test-images/httpd:2.4.38-4"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with two simulated nodes."""
    folder = tmp_path_factory.mktemp("conforming")
    server = Server(folder, "--database", f"sqlite:///{folder / 'ctrlmgr.db'}", "--nodes", "2")
    with server.running():
        yield server


@pytest.fixture
def kubectl(server: Server, tmp_path: Path) -> Kubectl:
    found = Kubectl(find_kubectl(), server.kubeconfig, tmp_path, server.new_namespace())
    found("wait nodes --all --for condition=Ready --timeout 20s")
    return found


def controller() -> dict[str, Any]:
    labels = {"app": "agnhost", "role": "primary"}
    container = {
        "name": "agnhost-primary",
        "image": AGNHOST,
        "ports": [{"name": "agnhost-server", "containerPort": 6379}],
    }
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    spec = {"replicas": 1, "selector": labels, "template": template}
    metadata = {"name": "agnhost-primary", "labels": labels}
    return {"apiVersion": "v1", "kind": "ReplicationController", "metadata": metadata, "spec": spec}


def running(kubectl: Kubectl) -> str:
    """Create the ReplicationController and return the name of its pod once the pod runs."""
    kubectl("create -f -", controller())
    until(lambda: kubectl("get pods -l app=agnhost --field-selector status.phase=Running -o name"))
    kubectl("wait pods -l app=agnhost --for condition=Ready --timeout 20s")
    return kubectl("get pods -l app=agnhost -o name").strip().removeprefix("pod/")


def test_describe_should_check_if_kubectl_describe_prints_relevant_information_for_rc_and_pods(
    kubectl: Kubectl,
) -> None:
    kubectl("create service clusterip agnhost-primary --tcp 6379:agnhost-server")
    kubectl("set selector service agnhost-primary app=agnhost,role=primary")
    name = running(kubectl)
    space = kubectl.namespace

    def check_description(what: str, *words: str) -> None:
        found = squeezed(kubectl(f"describe {what}"))
        missing = [each for each in words if each not in found]
        assert not missing, found

    check_description(
        f"pod {name}",
        *(f"Name: {name}", f"Namespace: {space}", "Node:", "Labels: app=agnhost", "role=primary", "Annotations:"),
        *("Status: Running", "IP:", "Controlled By: ReplicationController/agnhost-primary", f"Image: {AGNHOST}"),
        *("State: Running", "QoS Class: BestEffort"),
    )
    check_description(
        "rc agnhost-primary",
        *("Name: agnhost-primary", f"Namespace: {space}", "Selector: app=agnhost,role=primary"),
        *("Labels: app=agnhost", "role=primary", "Annotations:", "Replicas: 1 current / 1 desired"),
        *("Pods Status: 1 Running / 0 Waiting / 0 Succeeded / 0 Failed", "Pod Template:", f"Image: {AGNHOST}"),
        "Events:",
    )
    check_description(
        "service agnhost-primary",
        *("Name: agnhost-primary", f"Namespace: {space}", "Labels:", "Annotations:"),
        *("Selector: app=agnhost,role=primary", "Type: ClusterIP", "IP:", "Port: 6379-agnhost-server 6379/TCP"),
        *("Endpoints:", "Session Affinity: None"),
    )
    node = kubectl.get(f"pod {name}")["spec"]["nodeName"]
    check_description(
        f"node {node}",
        *(f"Name: {node}", "Labels:", "Annotations:", "CreationTimestamp:", "Conditions:", "Type", "Status"),
        *("LastHeartbeatTime", "LastTransitionTime", "Reason", "Message", "Addresses:", "Capacity:", "Version:"),
        *("Kernel Version:", "Kubelet Version:", "PodCIDR:", "Pods"),
    )
    check_description(f"namespace {space}", f"Name: {space}", "Labels:", "Annotations:", "Status: Active")


def test_label_should_update_the_label_on_a_resource(kubectl: Kubectl) -> None:
    kubectl(f"run pause --image {AGNHOST}")
    kubectl("wait pod pause --for condition=Ready --timeout 20s")
    kubectl("label pods pause testing-label=testing-label-value")
    assert "testing-label-value" in kubectl("get pod pause -L testing-label")
    kubectl("label pods pause testing-label-")
    assert "testing-label-value" not in kubectl("get pod pause -L testing-label")


def test_patch_should_add_annotations_for_pods_in_rc(kubectl: Kubectl) -> None:
    name = running(kubectl)
    kubectl(patch(f"pod {name}", {"metadata": {"annotations": {"x": "y"}}}))
    assert kubectl.get(f"pod {name}")["metadata"]["annotations"]["x"] == "y"


def test_replace_should_update_a_single_container_pods_image(kubectl: Kubectl) -> None:
    kubectl(f"run httpd --image {HTTPD} --pod-running-timeout 2m0s --labels run=httpd")
    kubectl("wait pod httpd --for condition=Ready --timeout 20s")
    check_description = kubectl("get pod httpd -o json").replace(HTTPD, BUSYBOX)
    kubectl("replace -f -", check_description)
    assert kubectl.get("pod httpd")["spec"]["containers"][0]["image"] == BUSYBOX
    until(lambda: kubectl.get("pod httpd")["status"]["containerStatuses"][0]["image"] == BUSYBOX)


def test_server_side_dry_run_should_check_if_kubectl_can_dry_run_update_pods(kubectl: Kubectl) -> None:
    kubectl(f"run httpd --image {HTTPD} --labels run=httpd")
    kubectl("wait pod httpd --for condition=Ready --timeout 20s")
    image = {"spec": {"containers": [{"name": "httpd", "image": BUSYBOX}]}}
    check_description = json.loads(kubectl(patch("pod httpd", image, "--dry-run=server -o json")))
    assert check_description["spec"]["containers"][0]["image"] == BUSYBOX
    assert kubectl.get("pod httpd")["spec"]["containers"][0]["image"] == HTTPD


def test_admission_webhook_should_include_webhook_resources_in_discovery_documents(kubectl: Kubectl) -> None:
    def raw(path: str) -> Any:
        return json.loads(kubectl(f"get --raw {path}"))

    group = next(each for each in raw("/apis")["groups"] if each["name"] == "admissionregistration.k8s.io")
    version = {"groupVersion": "admissionregistration.k8s.io/v1", "version": "v1"}
    assert version in group["versions"]
    assert version in raw("/apis/admissionregistration.k8s.io")["versions"]
    names = {each["name"] for each in raw("/apis/admissionregistration.k8s.io/v1")["resources"]}
    assert {"mutatingwebhookconfigurations", "validatingwebhookconfigurations"} <= names
