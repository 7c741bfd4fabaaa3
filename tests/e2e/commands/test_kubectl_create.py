"""Tests of kubectl create, run, expose and autoscale with every generator."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e.kubectl import Kubectl
from tests.e2e.serving import Server

REQUEST = """-----BEGIN CERTIFICATE REQUEST-----
MIHHMG4CAQAwDDEKMAgGA1UEAwwBeDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IA
BPR03yDqAoO4PZrLX2PrlJ7FQ57m0Yz7N03S3MMr3WZrb08nFk7kdCub1cV6wJfY
y0kxj2czau+CsA+lO8M/aTSgADAKBggqhkjOPQQDAgNJADBGAiEA2xOfEH4B8WOy
p8csq8gssuW3O6B5h4d7qTW1XFn40eECIQCDhcgHNicC08+hOQcQJL8tdHt0ML/0
7CHIp4ZhFWIG/A==
-----END CERTIFICATE REQUEST-----
"""


def part(fields: Any, path: str) -> Any:
    """Return the value at a dotted path within an object."""
    for step in path.split("."):
        fields = fields[int(step)] if isinstance(fields, list) else fields.get(step)
    return fields


@pytest.mark.parametrize(
    ("arguments", "created", "expected"),
    [
        (
            "configmap one --from-literal=a=1 --from-literal=b=2",
            "configmap/one",
            {"data": {"a": "1", "b": "2"}},
        ),
        (
            "secret generic one --from-literal=password=hush",
            "secret/one",
            {"type": "Opaque", "data.password": base64.b64encode(b"hush").decode()},
        ),
        (
            "secret docker-registry one --docker-username=me --docker-password=hush --docker-email=me@example.com",
            "secret/one",
            {"type": "kubernetes.io/dockerconfigjson"},
        ),
        ("serviceaccount one", "serviceaccount/one", {"metadata.name": "one"}),
        (
            "service clusterip one --tcp=80:8080",
            "service/one",
            {
                "spec.type": "ClusterIP",
                "spec.ports": [{"name": "80-8080", "protocol": "TCP", "port": 80, "targetPort": 8080}],
                "spec.selector": {"app": "one"},
                "spec.ipFamilies": ["IPv4"],
                "spec.internalTrafficPolicy": "Cluster",
            },
        ),
        ("service clusterip one --clusterip=None", "service/one", {"spec.clusterIP": "None"}),
        (
            "service nodeport one --tcp=80",
            "service/one",
            {"spec.type": "NodePort", "spec.externalTrafficPolicy": "Cluster", "spec.ports.0.targetPort": 80},
        ),
        (
            "service loadbalancer one --tcp=80",
            "service/one",
            {"spec.type": "LoadBalancer", "spec.allocateLoadBalancerNodePorts": True},
        ),
        (
            "service externalname one --external-name=example.com",
            "service/one",
            {"spec.type": "ExternalName", "spec.externalName": "example.com", "spec.clusterIP": None},
        ),
        (
            "deployment one --image=nginx --replicas=2 --port=80",
            "deployment.apps/one",
            {
                "spec.replicas": 2,
                "metadata.generation": 1,
                "spec.strategy.type": "RollingUpdate",
                "spec.revisionHistoryLimit": 10,
                "spec.template.spec.containers.0.imagePullPolicy": "Always",
                "spec.template.spec.containers.0.ports": [{"containerPort": 80, "protocol": "TCP"}],
            },
        ),
        (
            "job one --image=busybox -- sleep 1",
            "job.batch/one",
            {
                "spec.completions": 1,
                "spec.parallelism": 1,
                "spec.backoffLimit": 6,
                "spec.template.spec.restartPolicy": "Never",
                "spec.template.spec.containers.0.command": ["sleep", "1"],
            },
        ),
        (
            "role one --verb=get,list --resource=pods --resource-name=it",
            "role.rbac.authorization.k8s.io/one",
            {"rules": [{"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods"], "resourceNames": ["it"]}]},
        ),
        (
            "rolebinding one --role=reader --serviceaccount=ns:sa --user=bob",
            "rolebinding.rbac.authorization.k8s.io/one",
            {
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"},
                "subjects": [
                    {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "bob"},
                    {"kind": "ServiceAccount", "name": "sa", "namespace": "ns"},
                ],
            },
        ),
        ("quota one --hard=pods=2,cpu=1500m", "resourcequota/one", {"spec.hard": {"pods": "2", "cpu": "1500m"}}),
        (
            "ingress one --rule=example.com/path*=web:80 --class=inner",
            "ingress.networking.k8s.io/one",
            {
                "spec.ingressClassName": "inner",
                "spec.rules.0.host": "example.com",
                "spec.rules.0.http.paths": [
                    {
                        "path": "/path",
                        "pathType": "Prefix",
                        "backend": {"service": {"name": "web", "port": {"number": 80}}},
                    }
                ],
            },
        ),
    ],
)
def test_creating_in_a_namespace(kubectl: Kubectl, arguments: str, created: str, expected: dict[str, Any]) -> None:
    assert kubectl(f"create {arguments}") == f"{created} created\n"
    obj = kubectl.get(created)
    assert {path: part(obj, path) for path in expected} == expected


@pytest.mark.parametrize(
    ("arguments", "created", "expected"),
    [
        (
            "namespace kubectl-one",
            "namespace/kubectl-one",
            {"status.phase": "Active", "spec.finalizers": ["kubernetes"]},
        ),
        (
            "clusterrole kubectl-one --verb=get --resource=deployments.apps --non-resource-url=/logs/*",
            "clusterrole.rbac.authorization.k8s.io/kubectl-one",
            {"rules.0.apiGroups": ["apps"], "rules.1.nonResourceURLs": ["/logs/*"]},
        ),
        (
            "clusterrolebinding kubectl-one --clusterrole=view --group=people",
            "clusterrolebinding.rbac.authorization.k8s.io/kubectl-one",
            {"roleRef.name": "view", "subjects.0.kind": "Group"},
        ),
        (
            "priorityclass kubectl-one --value=1000 --description=high",
            "priorityclass.scheduling.k8s.io/kubectl-one",
            {"value": 1000, "preemptionPolicy": "PreemptLowerPriority"},
        ),
    ],
)
def test_creating_in_no_namespace(
    anywhere: Kubectl, server: Server, arguments: str, created: str, expected: dict[str, Any]
) -> None:
    assert anywhere(f"create {arguments}") == f"{created} created\n"
    obj = anywhere.get(created)
    assert {path: part(obj, path) for path in expected} == expected
    assert '"kubectl-one" deleted' in anywhere(f"delete {created} --wait=false")


def test_creating_a_cron_job(kubectl: Kubectl) -> None:
    kubectl.since(21)  # older versions of kubectl only know batch/v1beta1
    made = kubectl("create cronjob one --image=busybox --schedule='*/5 * * * *' -- date")
    assert made == "cronjob.batch/one created\n"
    spec = kubectl.get("cronjob one")["spec"]
    assert (spec["schedule"], spec["concurrencyPolicy"], spec["suspend"]) == ("*/5 * * * *", "Allow", False)
    assert kubectl("create job now --from=cronjob/one") == "job.batch/now created\n"
    job = kubectl.get("job now")
    assert job["metadata"]["ownerReferences"][0]["name"] == "one"
    assert job["spec"]["template"]["spec"]["containers"][0]["command"] == ["date"]


def test_creating_a_disruption_budget(kubectl: Kubectl) -> None:
    kubectl.since(21)  # older versions of kubectl only know policy/v1beta1
    made = kubectl("create poddisruptionbudget one --selector=app=web --min-available=1")
    assert made == "poddisruptionbudget.policy/one created\n"
    assert kubectl.get("pdb one")["spec"] == {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}


def test_creating_a_tls_secret(kubectl: Kubectl, server: Server) -> None:
    pki = server.kubeconfig.parent / "pki"
    certificate, key = pki / "server.crt", pki / "server.key"
    assert kubectl(f"create secret tls one --cert={certificate} --key={key}") == "secret/one created\n"
    secret = kubectl.get("secret one")
    assert secret["type"] == "kubernetes.io/tls"
    assert base64.b64decode(secret["data"]["tls.crt"]) == certificate.read_bytes()


def test_creating_from_files(kubectl: Kubectl, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("one\ntwo\n")
    (tmp_path / "bytes.bin").write_bytes(b"\xff\x00")
    kubectl(f"create configmap one --from-file={tmp_path}")
    created = kubectl.get("configmap one")
    assert (created["data"], created["binaryData"]) == ({"text.txt": "one\ntwo\n"}, {"bytes.bin": "/wA="})


PAIR = """
apiVersion: v1
kind: ConfigMap
metadata: {name: one}
data: {n: "1"}  # a comment
---
apiVersion: v1
kind: Secret
metadata: {generateName: drawn-}
stringData: {a: b}
"""


def test_creating_from_yaml(kubectl: Kubectl, namespace: str) -> None:
    first, second = kubectl("create -f -", PAIR).splitlines()
    assert first == "configmap/one created"
    name = second.removesuffix(" created").removeprefix("secret/")
    assert name.startswith("drawn-")
    assert kubectl.get(f"secret {name}")["data"] == {"a": "Yg=="}
    raw = json.dumps({"metadata": {"name": "two"}})
    made = json.loads(kubectl(f"create --raw /api/v1/namespaces/{namespace}/configmaps -f -", raw))
    assert (made["kind"], made["metadata"]["name"]) == ("ConfigMap", "two")


def test_a_server_dry_run_returns_the_created_object(kubectl: Kubectl) -> None:
    arguments = "create service nodeport one --tcp=80 --dry-run=server"
    assert kubectl(arguments) == "service/one created (server dry run)\n"
    service = yaml.safe_load(kubectl(f"{arguments} -o yaml"))
    assert service["spec"]["sessionAffinity"] == "None"
    assert service["metadata"]["uid"]
    assert "NotFound" in kubectl.fails("get service one")
    kubectl("create configmap one")
    assert "already exists" in kubectl.fails("create configmap one --dry-run=server")


def test_a_client_dry_run_sends_no_request(kubectl: Kubectl) -> None:
    assert kubectl("create configmap one --dry-run=client") == "configmap/one created (dry run)\n"
    made = yaml.safe_load(kubectl("create deployment one --image=nginx --dry-run=client -o yaml"))
    assert made["spec"]["replicas"] == 1
    assert "uid" not in made["metadata"]
    assert kubectl("get configmaps,deployments -o name") == "configmap/kube-root-ca.crt\n"


def test_running_a_pod(kubectl: Kubectl) -> None:
    assert kubectl("run one --image=nginx:1.27 --port=80 --env=A=B --labels=app=web,x=y") == "pod/one created\n"
    pod = kubectl.get("pod one")
    container = pod["spec"]["containers"][0]
    assert container["imagePullPolicy"] == "IfNotPresent"
    assert container["ports"] == [{"containerPort": 80, "protocol": "TCP"}]
    assert (pod["spec"]["schedulerName"], pod["spec"]["terminationGracePeriodSeconds"]) == ("default-scheduler", 30)
    assert pod["status"] == {"phase": "Pending", "qosClass": "BestEffort"}
    assert kubectl("get pod one --no-headers").split()[:4] == ["one", "0/1", "Pending", "0"]


def test_running_a_pod_behind_a_service(kubectl: Kubectl) -> None:
    made = kubectl("run one --image=nginx --port=80 --expose").splitlines()
    assert sorted(made) == ["pod/one created", "service/one created"]
    assert kubectl.get("service one")["spec"]["selector"] == {"run": "one"}


def test_exposing(kubectl: Kubectl) -> None:
    kubectl("create deployment app --image=nginx --port=80")
    assert kubectl("expose deployment app --port=8080 --target-port=80 --name=web") == "service/web exposed\n"
    spec = kubectl.get("service web")["spec"]
    assert (spec["selector"], spec["ports"][0]["targetPort"]) == ({"app": "app"}, 80)
    kubectl("run one --image=nginx --port=80 --labels=a=b")
    assert kubectl("expose pod one --type=NodePort") == "service/one exposed\n"
    assert 30000 <= kubectl.get("service one")["spec"]["ports"][0]["nodePort"] <= 32767


def test_autoscaling(kubectl: Kubectl) -> None:
    kubectl("create deployment app --image=nginx")
    percent = "--cpu-percent=50" if kubectl.minor < 34 else "--cpu=50%"
    made = kubectl(f"autoscale deployment app --min=2 --max=5 {percent}")
    assert made == "horizontalpodautoscaler.autoscaling/app autoscaled\n"
    spec = kubectl.get("horizontalpodautoscalers.v2.autoscaling app")["spec"]
    assert spec["scaleTargetRef"] == {"kind": "Deployment", "name": "app", "apiVersion": "apps/v1"}
    assert spec["metrics"] == [
        {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}
    ]
    head, row = kubectl("get hpa app").splitlines()
    assert head.split() == ["NAME", "REFERENCE", "TARGETS", "MINPODS", "MAXPODS", "REPLICAS", "AGE"]
    assert row.split()[:7] == ["app", "Deployment/app", "cpu:", "<unknown>/50%", "2", "5", "0"]


def test_a_signing_request_is_approved_or_denied(anywhere: Kubectl) -> None:
    anywhere.since(22)  # older versions of kubectl know certificates.k8s.io/v1 only in part
    for name, word in (("kubectl-yes", "Approved"), ("kubectl-no", "Denied")):
        anywhere("create -f -", signing_request(name))
        assert anywhere(f"get csr {name} --no-headers").split()[-1] == "Pending"
        verb = {"Approved": "approve", "Denied": "deny"}[word]
        done = anywhere(f"certificate {verb} {name}")
        assert done == f"certificatesigningrequest.certificates.k8s.io/{name} {word.lower()}\n"
        assert anywhere(f"get csr {name} --no-headers").split()[-1] == word
        anywhere(f"delete csr {name}")


def signing_request(name: str) -> dict[str, Any]:
    request = base64.b64encode(REQUEST.encode()).decode()
    return {
        "apiVersion": "certificates.k8s.io/v1",
        "kind": "CertificateSigningRequest",
        "metadata": {"name": name},
        "spec": {"request": request, "signerName": "example.com/tests", "usages": ["client auth"]},
    }
