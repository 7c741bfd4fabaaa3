"""Tests of kubectl's discovery commands: kinds, fields, version, and the current user's rights."""

from __future__ import annotations

import http.client
import json
import re
from typing import Any

import pytest
import yaml

from tests.e2e.kubectl import Kubectl, squeezed
from tests.e2e.serving import DEADLINE, Server


def test_versions(anywhere: Kubectl, server: Server) -> None:
    told = json.loads(anywhere("version -o json"))["serverVersion"]
    assert told["gitVersion"].startswith("v1.36.2+ctrlmgr.")
    assert (told["major"], told["minor"]) == ("1", "36")
    assert server.request("GET", "/version")[1]["gitVersion"] == told["gitVersion"]


def test_api_resources_lists_the_servers_kinds(anywhere: Kubectl) -> None:
    listed = [line.split() for line in anywhere("api-resources --no-headers").splitlines()]
    assert ["services", "svc", "v1", "true", "Service"] in listed
    assert ["deployments", "deploy", "apps/v1", "true", "Deployment"] in listed
    assert ["namespaces", "ns", "v1", "false", "Namespace"] in listed
    assert ["endpointslices", "discovery.k8s.io/v1", "true", "EndpointSlice"] in listed
    wide = squeezed(anywhere("api-resources -o wide --api-group=apps"))
    assert re.search(r"^deployments deploy apps/v1 true Deployment \S*create.*watch.*$", wide, re.MULTILINE)
    cluster = anywhere("api-resources --namespaced=false --verbs=list -o name").split()
    assert {"namespaces", "nodes", "servicecidrs.networking.k8s.io"} <= set(cluster)
    assert not {"pods", "tokenreviews.authentication.k8s.io"} & set(cluster)
    assert set(anywhere("api-versions").split()) >= {"v1", "apps/v1", "batch/v1", "discovery.k8s.io/v1", "policy/v1"}


@pytest.mark.parametrize("short", ["svc", "services", "service", "services.v1.", "Service"])
def test_a_kind_is_found_by_each_of_its_names(kubectl: Kubectl, short: str) -> None:
    kubectl("create service clusterip one --tcp=80")
    assert kubectl(f"get {short} one -o name") == "service/one\n"


@pytest.mark.parametrize(
    ("what", "fields"),
    [
        ("configmap", ["apiVersion <string>", "binaryData <map[string]string>", "immutable <boolean>"]),
        ("pods.spec", ["containers <[]Container>", "terminationGracePeriodSeconds <integer>"]),
        ("deployment.spec.template.spec.containers.ports", ["containerPort <integer>", "protocol <string>"]),
        ("service.spec.ports", ["port <integer>", "targetPort <IntOrString>"]),
        ("cronjobs.spec", ["schedule <string>", "suspend <boolean>"]),
        ("events.eventTime", ["<string>"]),
    ],
)
def test_explaining_fields(anywhere: Kubectl, what: str, fields: list[str]) -> None:
    told = squeezed(anywhere(f"explain {what}"))
    if anywhere.minor < 27:  # these subcommands know no names of types
        told, fields = told, [re.sub(r"<(\[\])?(Container|IntOrString)>", "", field) for field in fields]
    assert [field for field in fields if field not in told] == [], told


def test_explain_recursive_prints_all_fields_below_a_field(anywhere: Kubectl) -> None:
    told = squeezed(anywhere("explain service.spec --recursive"))
    assert "sessionAffinityConfig" in told
    assert "timeoutSeconds <integer>" in told
    assert anywhere.fails("explain service.nothing").endswith('error: field "nothing" does not exist\n')


def test_explain_reads_openapi_v2(anywhere: Kubectl) -> None:
    anywhere.since(27)
    assert "containerPort <integer>" in squeezed(
        anywhere("explain pods.spec.containers.ports --output=plaintext-openapiv2")
    )


def test_explaining_another_version(anywhere: Kubectl) -> None:
    v1 = anywhere("explain horizontalpodautoscaler.spec --api-version=autoscaling/v1")
    v2 = anywhere("explain horizontalpodautoscaler.spec --api-version=autoscaling/v2")
    assert ("targetCPUUtilizationPercentage" in v1, "metrics" in v1) == (True, False)
    assert ("targetCPUUtilizationPercentage" in v2, "metrics" in v2) == (False, True)


def test_cluster_info_prints_the_address(anywhere: Kubectl, server: Server) -> None:
    told = re.sub(r"\x1b\[[\d;]*m", "", anywhere("cluster-info"))
    assert f"Kubernetes control plane is running at {server.url}\n" in told
    assert anywhere("config view --minify -o jsonpath='{.clusters[0].cluster.server}'") == server.url
    assert anywhere("config current-context") == "ctrlmgr\n"
    assert server.token not in anywhere("config view")


def test_dumping_a_namespace(kubectl: Kubectl, namespace: str) -> None:
    kubectl("create deployment app --image=nginx")
    dump = kubectl(f"cluster-info dump --namespaces={namespace} -o json")
    decoder, kinds, at = json.JSONDecoder(), [], 0
    while (at := dump.find("{", at)) >= 0:
        document, at = decoder.raw_decode(dump, at)
        kinds += [document["kind"], *(each["metadata"]["name"] for each in document["items"])]
    assert {"NodeList", "EventList", "DeploymentList", "app", "PodList"} <= set(kinds)


def test_allowed_requests(anywhere: Kubectl) -> None:
    assert anywhere("auth can-i create deployments.apps") == "yes\n"
    assert anywhere("auth can-i '*' '*'") == "yes\n"
    assert anywhere("auth can-i get /metrics") == "yes\n"
    listed = squeezed(anywhere("auth can-i --list")).splitlines()
    assert listed[:2] == ["Resources Non-Resource URLs Resource Names Verbs", "*.* [] [] [*]"]
    assert "[*] [] [*]" in [line.strip() for line in listed]


def test_whoami_returns_the_user(anywhere: Kubectl) -> None:
    anywhere.since(28)
    told = yaml.safe_load(anywhere("auth whoami -o yaml"))["status"]["userInfo"]
    assert told["groups"] == ["system:masters", "system:authenticated"]
    told = yaml.safe_load(anywhere("auth whoami -o yaml --as=bob --as-group=people"))["status"]["userInfo"]
    assert (told["username"], told["groups"]) == ("bob", ["people", "system:authenticated"])


def test_unauthenticated_clients_are_refused(anywhere: Kubectl) -> None:
    assert anywhere.fails("get namespaces --token=wrong").endswith(
        "error: You must be logged in to the server (Unauthorized)\n"
    )
    stranger = "--as=system:anonymous --as-group=system:unauthenticated"
    assert anywhere.fails(f"get namespaces {stranger}") == (
        'Error from server (Forbidden): namespaces is forbidden: User "system:anonymous" cannot list resource '
        '"namespaces" in API group "" at the cluster scope\n'
    )
    assert anywhere.fails(f"auth can-i list pods {stranger}").endswith(
        'selfsubjectaccessreviews.authorization.k8s.io is forbidden: User "system:anonymous" cannot create resource '
        '"selfsubjectaccessreviews" in API group "authorization.k8s.io" at the cluster scope\n'
    )


def test_rights_are_reconciled(kubectl: Kubectl, namespace: str) -> None:
    role: dict[str, Any] = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": {"name": "reader", "namespace": namespace},
        "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}],
    }
    assert "role.rbac.authorization.k8s.io/reader reconciled" in kubectl("auth reconcile -f -", role)
    more = {**role, "rules": [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}]}
    kubectl("auth reconcile -f -", more)
    assert [each["resources"] for each in kubectl.get("role reader")["rules"]] == [["pods"], ["secrets"]]


def test_health_pages(anywhere: Kubectl) -> None:
    assert anywhere("get --raw /healthz") == "ok"
    assert anywhere("get --raw /readyz?verbose").endswith("readyz check passed\n")
    assert "apiserver_request_total{" in anywhere("get --raw /metrics")


def test_verbose_output_changes_nothing(kubectl: Kubectl) -> None:
    for level in (6, 8):
        done = kubectl.run(f"get namespaces -o name -v={level}")
        assert done.code == 0
        assert f"namespace/{kubectl.namespace}\n" in done.out
        assert "200 OK" in done.err


def test_kubectl_proxy_forwards_requests(kubectl: Kubectl, namespace: str) -> None:
    kubectl("create configmap one")
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    with kubectl.started("proxy --port=0") as process:
        assert process.stdout is not None
        address = process.stdout.readline().split()[-1]
        connection = http.client.HTTPConnection(address, timeout=DEADLINE)

        def ask(method: str, path: str, body: str = "") -> http.client.HTTPResponse:
            connection.request(method, path, body or None, {"Content-Type": "application/json"} if body else {})
            return connection.getresponse()

        found = json.loads(ask("GET", f"{path}/one").read())
        assert found["metadata"]["name"] == "one"
        assert ask("POST", path, '{"metadata":{"name":"two"}}').read().startswith(b'{"kind":"ConfigMap"')
        listed = json.loads(ask("GET", f"{path}?limit=1").read())
        assert (listed["kind"], listed["metadata"]["remainingItemCount"]) == ("ConfigMapList", 2)
        revision = found["metadata"]["resourceVersion"]
        told = ask("GET", f"{path}?watch=true&resourceVersion={revision}&timeoutSeconds=1")
        assert json.loads(told.readline())["object"]["metadata"]["name"] == "two"
        assert told.read() == b""
        connection.close()
