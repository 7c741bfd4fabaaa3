"""Tests of `ctrlmgr rbac` and `ctrlmgr new --deploy`: the generated permissions suffice, and the generated manifests
are valid.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from ctrlmgr import App, Client, Context, Kind, Metadata, Model, Status, cli
from ctrlmgr.framework.app_permissions import Right, declared_rights, manifests, rules_of, webhook_rules
from ctrlmgr.testing import Harness
from ctrlmgr.testing.served import ServerProcess
from examples.shop import Shop, ShopSpec, app
from tests.framework.served import HttpsCluster, wait_until
from tests.framework.test_run import FAST, run

ROOT = Path(__file__).parents[2]
READ = ["get", "list", "watch"]


class BoxStatus(Status):
    full: bool = False


class Crate(Kind, api_version="example.com/v1"):
    spec: Model = Model()
    status: BoxStatus = BoxStatus()


class Bare(Kind, api_version="example.com/v1"):
    spec: Model = Model()


def test_declared_rights_follow_from_the_controllers_kinds() -> None:
    boxes = App("boxes")

    @boxes.controller(Crate, owns=["v1/Secret"], reads=["v1/Node"])
    def box_controller(box: Crate, context: Context) -> None: ...

    @box_controller.finalize("example.com/box")
    def empty(box: Crate, context: Context) -> None: ...

    @boxes.controller(Bare)
    def bare_controller(bare: Bare, context: Context) -> None: ...

    assert rules_of(declared_rights(boxes, definitions=False)) == [
        {"apiGroups": [""], "resources": ["events"], "verbs": ["create", "patch"]},
        {"apiGroups": [""], "resources": ["nodes"], "verbs": READ},
        {"apiGroups": [""], "resources": ["secrets"], "verbs": [*READ, "create", "patch"]},
        {"apiGroups": ["events.k8s.io"], "resources": ["events"], "verbs": ["create", "patch"]},
        {"apiGroups": ["example.com"], "resources": ["bares"], "verbs": READ},
        {"apiGroups": ["example.com"], "resources": ["crates"], "verbs": [*READ, "update"]},
        {"apiGroups": ["example.com"], "resources": ["crates/finalizers"], "verbs": ["update"]},
        {"apiGroups": ["example.com"], "resources": ["crates/status"], "verbs": ["patch"]},
    ]


def test_rights_within_a_namespace_are_a_role() -> None:
    kinds = [(each["kind"], each["metadata"].get("namespace")) for each in manifests("x", "ops", [], within="shop")]
    assert kinds[1:3] == [("Role", "shop"), ("RoleBinding", "shop")]
    everywhere = [each["kind"] for each in manifests("x", "ops", [])]
    assert everywhere == ["ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"]


OPERATOR = """
from ctrlmgr import App, Context, Kind, Model

app = App("cleaner")

class Mess(Kind, api_version="example.com/v1"):
    spec: Model = Model()

@app.controller(Mess, reads=["v1/Pod"])
def cleaner(mess: Mess, context: Context) -> None:
    for pod in context.list("v1/Pod"):
        context.delete(pod)
    context.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "clean"}, "data": {}}, owned=False)
"""
TEST = """
from ctrlmgr import Metadata
from ctrlmgr.testing import Harness
from cleaner import Mess, app

SPEC = {"containers": [{"name": "c", "image": "i"}]}
POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": SPEC}

def test_it_cleans():
    cluster = Harness(app)
    cluster.create(POD)
    cluster.create(Mess(metadata=Metadata(name="m")))
    cluster.settle()
    assert not cluster.list("v1/Pod")
"""


def rbac(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(folder), str(ROOT), str(ROOT / "examples")])
    environment = {**os.environ, "PYTHONPATH": path}
    command = [sys.executable, "-m", "ctrlmgr", "rbac", *arguments]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=200
    )


def rules(text: str) -> list[dict[str, Any]]:
    return next(each["rules"] for each in yaml.safe_load_all(text) if each["kind"] == "ClusterRole")


def test_rights_are_enforced_in_tests(tmp_path: Path) -> None:
    (tmp_path / "cleaner.py").write_text(OPERATOR)
    (tmp_path / "test_cleaner.py").write_text(TEST)
    declared = rules(rbac(tmp_path, "cleaner:app").stdout)
    told = rbac(tmp_path, "cleaner:app", "--tests", "test_cleaner.py")
    found = rules(told.stdout)
    assert "1 passed" in told.stderr
    assert {"apiGroups": [""], "resources": ["pods"], "verbs": READ} in declared
    assert {"apiGroups": [""], "resources": ["pods"], "verbs": [*READ, "delete"]} in found
    assert {"apiGroups": [""], "resources": ["configmaps", "events"], "verbs": ["create", "patch"]} in found
    (tmp_path / "test_cleaner.py").write_text("def test_it(): assert False")
    failed = rbac(tmp_path, "cleaner:app", "--tests", "test_cleaner.py")
    assert (failed.returncode, failed.stdout) == (2, "")
    assert "error: rbac: the tests failed with exit code 1; correct them, or omit --tests" in failed.stderr


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with ServerProcess(tmp_path_factory.mktemp("server"), "--database", "memory:") as running:
        yield running


def as_account(cluster: HttpsCluster, folder: Path, name: str) -> Path:
    """Return a kubeconfig with the token of a ServiceAccount."""
    path = f"/api/v1/namespaces/default/serviceaccounts/{name}/token"
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    token = cluster.ask("POST", path, body)["status"]["token"]
    config = yaml.safe_load(cluster.server.kubeconfig.read_text())
    config["users"][0]["user"] = {"token": token}
    file = folder / "kubeconfig"
    file.write_text(yaml.safe_dump(config))
    file.chmod(0o600)
    return file


def test_the_generated_rights_of_an_app_suffice(server: ServerProcess, tmp_path: Path) -> None:
    cluster, client = HttpsCluster(server), Client.connect(server.kubeconfig)
    told = rbac(tmp_path, "shop:app")
    for each in yaml.safe_load_all(told.stdout):
        client.create(each)
    kubeconfig = as_account(cluster, tmp_path, "shop")
    command = [sys.executable, "-m", "ctrlmgr", "run", "shop:app", "--kubeconfig", str(kubeconfig)]
    command += ["--leader-elect-resource-namespace", "default", *FAST]
    path = os.pathsep.join([str(ROOT), str(ROOT / "examples")])
    output = tmp_path / "log"
    with output.open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, "PYTHONPATH": path})
        try:
            wait_until(lambda: cluster.is_served("/apis/example.com/v1/namespaces/default/shops"))
            client.create(Shop(metadata=Metadata(name="corner"), spec=ShopSpec(prices={"tea": 2})))
            wait_until(lambda: bool((found := client.get(Shop, "corner")) and found.status.prices))
        finally:
            process.terminate()
            process.wait(30)
    assert "orbidden" not in output.read_text()


def test_the_manifests_of_a_new_project_are_valid(tmp_path: Path) -> None:
    folder = tmp_path / "corner-shop"
    assert cli.run(["new", "corner-shop", "--deploy", "--directory", str(folder)]) == 0
    objects = [*yaml.safe_load_all((folder / "deploy" / "operator.yaml").read_text())]
    cluster = Harness(App("none"), nodes=1)
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "corner-shop"}})
    for each in objects:
        cluster.create(each)
    cluster.advance(30)
    [pod] = cluster.list("v1/Pod")
    assert pod.fields["status"]["phase"] == "Running"
    [container] = pod.fields["spec"]["containers"]
    lines = [each.split(maxsplit=1) for each in (folder / "Dockerfile").read_text().splitlines()]
    entry = json.loads(dict(lines)["ENTRYPOINT"])
    assert [*entry, *container["args"]] == [
        *["ctrlmgr", "run", "--log-format", "json", "corner_shop:app"],
        *["--leader-elect-resource-namespace=corner-shop", "--status-address=0.0.0.0:8080"],
    ]
    assert dict(lines)["USER"] == str(pod.fields["spec"]["securityContext"]["runAsUser"])
    assert (folder / ".dockerignore").read_text().splitlines()[-1] == "!wheels"
    assert "## Deploy it" in (folder / "README.md").read_text()


def test_the_example_declares_its_kinds() -> None:
    assert Right("", "configmaps", "patch") in [*declared_rights(app)]


RULED = """
from ctrlmgr import App
app = App("ruled")

@app.admission("v1/Service", validates=True)
def closed(service, write):
    pass
"""


def test_an_app_with_rules_can_register_its_webhooks(server: ServerProcess, tmp_path: Path) -> None:
    cluster, client = HttpsCluster(server), Client.connect(server.kubeconfig)
    (tmp_path / "ruled.py").write_text(RULED)
    told = rbac(tmp_path, "ruled.py", "--image", "ruled:1")
    objects = {each["kind"]: each for each in yaml.safe_load_all(told.stdout)}
    container = objects["Deployment"]["spec"]["template"]["spec"]["containers"][0]
    assert "--webhook-service=default/ruled" in container["args"]
    assert objects["Service"]["spec"]["ports"][0]["targetPort"] in [each["name"] for each in container["ports"]]
    for each in yaml.safe_load_all(told.stdout):
        if each["kind"] != "Deployment":
            client.create(each)
    kubeconfig = as_account(cluster, tmp_path, "ruled")
    own = ("--webhook-service", "default/ruled", "--webhook-listen", "127.0.0.1:0")
    arguments = ("--leader-elect-resource-namespace", "default", *own, *FAST)
    path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/ruled.apps.ctrlmgr.io"
    with run(kubeconfig, "ruled", str(tmp_path / "ruled.py"), *arguments):
        wait_until(lambda: cluster.is_served(path))
    assert not cluster.is_served(path)
    assert "orbidden" not in kubeconfig.with_name("ruled.log").read_text()


def test_rights_to_register_webhooks_are_limited_to_the_app() -> None:
    ruled = App("ruled")
    assert webhook_rules(ruled) == []

    @ruled.admission("v1/Service")
    def closed(service: object, write: object) -> None: ...

    create, own = webhook_rules(ruled, "shop")
    assert create["verbs"] == ["create"]
    assert own["resourceNames"] == ["shop.ruled.apps.ctrlmgr.io"]
    kinds = [each["kind"] for each in manifests("x", "ops", [], within="shop", webhooks=[create, own])]
    assert kinds[-2:] == ["ClusterRole", "ClusterRoleBinding"]
