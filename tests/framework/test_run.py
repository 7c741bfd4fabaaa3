"""Tests of controllers that run in a separate process against `ctrlmgr serve`: the scenario, two candidates, and
built-in controllers.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

import pytest
import yaml

from ctrlmgr import Client, Invalid, Metadata, NotFound, cli
from ctrlmgr.testing.served import ServerProcess
from examples.shop import Shop, ShopSpec
from tests.framework.served import HttpsCluster, wait_until
from tests.framework.shops import SHOP, check_scenario
from tests.free_ports import free_ports

ROOT = Path(__file__).parents[2]
FAST = (
    "--leader-elect-lease-duration",
    "2s",
    "--leader-elect-renew-deadline",
    "1s",
    "--leader-elect-retry-period",
    "200ms",
)
LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    controllers = "*,-endpoints-controller"
    folder = tmp_path_factory.mktemp("server")
    with ServerProcess(folder, "--database", "memory:", "--controllers", controllers) as running:
        yield running


@contextmanager
def run(
    cluster: ServerProcess | Path, name: str, *arguments: str, allows_tracebacks: bool = False
) -> Iterator[subprocess.Popen[bytes]]:
    kubeconfig = cluster if isinstance(cluster, Path) else cluster.kubeconfig
    command = [sys.executable, "-m", "ctrlmgr", "run", *arguments, "--kubeconfig", str(kubeconfig)]
    output = kubeconfig.with_name(f"{name}.log")
    path = os.pathsep.join([str(ROOT), str(ROOT / "examples"), os.environ.get("PYTHONPATH", "")])
    with output.open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, "PYTHONPATH": path})
        try:
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            code = process.wait(30)
            told = output.read_text()
            assert code in (0, -signal.SIGKILL), told
            assert allows_tracebacks or "Traceback" not in told, told


def use_typed_client(server: ServerProcess) -> None:
    client = Client.connect(server.kubeconfig)
    wanted = Shop(metadata=Metadata(name="typed", labels={"a": "b"}), spec=ShopSpec(prices={"tea": 1}))
    assert client.create(wanted).spec.currency == "EUR"
    seen = (each for _, each in client.watch(Shop, "default") if each.name == "typed" and each.status.prices)
    assert next(seen).status.conditions[0].type == "Ready"
    assert [each.name for each in client.list(Shop, labels={"a": "b"})] == ["typed"]
    with pytest.raises(Invalid, match="currency"):
        client.patch(Shop, "typed", {"spec": {"currency": "x"}})
    assert client.apply(wanted, force=True).metadata.labels == {"a": "b"}
    prices = client.get("v1/ConfigMap", "typed-prices")
    assert prices is not None
    assert prices["data"] == {"tea": "1 EUR"}
    client.delete(Shop, "typed")
    wait_until(lambda: client.get(Shop, "typed") is None)
    with pytest.raises(NotFound):
        client.delete(Shop, "typed")


def test_the_example_operator_and_a_typed_client_run(server: ServerProcess) -> None:
    cluster = HttpsCluster(server)
    with run(server, "scenario", "shop:app"):
        check_scenario(cluster)
        assert cluster.ask("GET", f"{LEASE}ctrlmgr-shop")["spec"]["holderIdentity"]
        cluster.delete("example.com/v1/Shop", "corner")
        wait_until(lambda: cluster.get("v1/ConfigMap", "corner-prices") is None)
        use_typed_client(server)
    assert cluster.ask("GET", f"{LEASE}ctrlmgr-shop")["spec"]["holderIdentity"] == ""  # given back
    managers = cluster.ask("GET", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/shops.example.com")
    assert "ctrlmgr-app" in [each["manager"] for each in managers["metadata"]["managedFields"]]


def test_an_app_outlives_its_server_and_exports_metrics(tmp_path: Path) -> None:
    port, pages = free_ports(2)
    tokens = tmp_path / "tokens.csv"
    tokens.write_text('secret,operator,1,"system:masters"\n')
    tokens.chmod(0o600)
    listens: tuple[str, ...] = ("--listen", f"127.0.0.1:{port}", "--database", f"sqlite:///{tmp_path}/log.db")
    listens += ("--token-auth-file", str(tokens))
    with ServerProcess(tmp_path, *listens) as server:
        cluster = HttpsCluster(server)
        config = yaml.safe_load(server.kubeconfig.read_text())
        config["users"][0]["user"] = {"token": "secret"}  # each server of the tests has another administrator's token
        operator = tmp_path / "operator.yaml"
        operator.write_text(yaml.safe_dump(config))
        with run(operator, "outlives", "shop:app", "--status-address", f"127.0.0.1:{pages}", *FAST):
            cluster.create(SHOP)
            wait_until(lambda: cluster.get("v1/ConfigMap", "corner-prices") is not None)
            server.stop()
            with ServerProcess(tmp_path, *listens) as again:
                cluster = HttpsCluster(again)
                cluster.patch("example.com/v1/Shop", "corner", {"spec": {"currency": "SEK"}})
                wait_until(lambda: cluster.get("v1/ConfigMap", "corner-prices")["data"]["tea"] == "3 SEK")
                with urlopen(f"http://127.0.0.1:{pages}/metrics", timeout=10) as answer:
                    assert 'controller="shop-controller"' in answer.read().decode()
                with urlopen(f"http://127.0.0.1:{pages}/readyz", timeout=10) as answer:
                    assert answer.read() == b"ok"


def test_one_process_leads_and_another_takes_over(server: ServerProcess) -> None:
    cluster = HttpsCluster(server)
    lease = f"{LEASE}shops"
    with run(server, "first", "shop:app", "--leader-elect-resource-name", "shops", *FAST) as first:
        wait_until(lambda: cluster.is_served(lease) and bool(cluster.ask("GET", lease)["spec"]["holderIdentity"]))
        holder = cluster.ask("GET", lease)["spec"]["holderIdentity"]
        with run(server, "second", "shop:app", "--leader-elect-resource-name", "shops", *FAST):
            cluster.create({**SHOP, "metadata": {"name": "taken"}})
            wait_until(lambda: cluster.get("v1/ConfigMap", "taken-prices") is not None)
            first.kill()
            cluster.patch("example.com/v1/Shop", "taken", {"spec": {"currency": "SEK"}})
            wait_until(lambda: cluster.get("v1/ConfigMap", "taken-prices")["data"]["tea"] == "3 SEK")
            assert cluster.ask("GET", lease)["spec"]["holderIdentity"] != holder


def test_built_in_controllers_run_in_the_app(server: ServerProcess) -> None:
    cluster = HttpsCluster(server)
    spec = {"selector": {"app": "web"}, "ports": [{"port": 80}]}
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": spec}
    cluster.ask("POST", "/api/v1/namespaces/default/services", service)
    containers = {"containers": [{"name": "c", "image": "i"}]}
    pod = {"metadata": {"name": "web", "labels": {"app": "web"}}, "spec": {"nodeName": "n", **containers}}
    cluster.ask("POST", "/api/v1/namespaces/default/pods", {"apiVersion": "v1", "kind": "Pod", **pod})
    status = {"podIP": "10.1.2.3", "podIPs": [{"ip": "10.1.2.3"}], "conditions": [{"type": "Ready", "status": "True"}]}
    cluster.ask(
        "PATCH", "/api/v1/namespaces/default/pods/web/status", {"status": status}, "application/merge-patch+json"
    )
    path = "/api/v1/namespaces/default/endpoints/web"
    assert not cluster.is_served(path)
    with run(server, "builtin", "builtin:endpoints-controller", "--leader-elect=false"):
        wait_until(lambda: cluster.is_served(path) and bool(cluster.ask("GET", path).get("subsets")))
        subset = cluster.ask("GET", path)["subsets"][0]
        assert [each["ip"] for each in subset["addresses"]] == ["10.1.2.3"]
        cluster.ask("DELETE", "/api/v1/namespaces/default/services/web")
        wait_until(lambda: not cluster.is_served(path))


ACTS = "builtin:simulated-nodes-controller writes in the names of its nodes, and runs in serve alone"
SIGNS = "builtin:serviceaccount-token-controller needs the keys of the control plane, and runs in serve alone"


RULES = """
from ctrlmgr import App
app = App("rules")

@app.admission("v1/Pod")
def few_pods(pod, write):
    pass
"""
MIXED = (
    RULES
    + """
@app.controller("v1/Pod")
def pods(pod, context):
    pass
"""
)


def test_without_admission_functions_and_controllers_run_refuses(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rules_alone.py").write_text(RULES)
    (tmp_path / "rules_mixed.py").write_text(MIXED)
    assert cli.run(["run", "rules_alone.py", "--no-admission", "--kubeconfig", "nowhere"]) == cli.ExitCode.USAGE
    assert "there is nothing to run, because rules has no controller" in capsys.readouterr().err
    for arguments in (["rules_mixed.py", "--no-admission"], ["rules_mixed.py"], ["rules_alone.py"]):
        cli.run(["run", *arguments, "--kubeconfig", "nowhere"])
        assert "nowhere" in capsys.readouterr().err  # the process has connected to the cluster


def test_a_file_runs_and_prints_its_readiness(server: ServerProcess, tmp_path: Path) -> None:
    (tmp_path / "operator.py").write_text(
        "from ctrlmgr import App\napp = App('late')\n"
        "@app.controller('example.org/v1/Later')\ndef later(obj, context):\n    print('seen', obj.name, flush=True)\n"
    )
    log = server.kubeconfig.with_name("file.log")
    with run(server, "file", str(tmp_path / "operator.py"), "--leader-elect=false"):
        wait_until(lambda: "waiting for a definition" in log.read_text())
        assert "laters.example.org" in log.read_text()


@pytest.mark.parametrize(
    ("argument", "line"),
    [
        ("store:app", "error: run store:app: there is no module store"),
        ("builtin:nobody", "error: controllers.enabled: there is no controller 'nobody'"),
        ("builtin:serviceaccount-token-controller", f"error: {SIGNS}"),
        ("builtin:simulated-nodes-controller", f"error: {ACTS}"),
    ],
)
def test_an_unrunnable_app_is_reported_in_one_line(
    argument: str, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(["run", argument, "--kubeconfig", "nowhere"]) == cli.ExitCode.USAGE
    (told,) = capsys.readouterr().err.strip().splitlines()
    assert told.startswith(line)


def test_only_the_given_namespace_is_followed(server: ServerProcess) -> None:
    cluster = HttpsCluster(server)
    cluster.ask("POST", "/api/v1/namespaces", {"metadata": {"name": "mine"}})
    mine = "/apis/example.com/v1/namespaces/mine/shops"
    with run(server, "namespace", "shop:app", "--namespace", "mine"):
        wait_until(lambda: cluster.is_served(mine))
        cluster.create({**SHOP, "metadata": {"name": "elsewhere"}})
        cluster.ask("POST", mine, {**SHOP, "metadata": {"name": "here"}})
        wait_until(lambda: cluster.is_served("/api/v1/namespaces/mine/configmaps/here-prices"))
        holder = "/apis/coordination.k8s.io/v1/namespaces/mine/leases/ctrlmgr-shop"
        assert cluster.ask("GET", holder)["spec"]["holderIdentity"]
        assert cluster.get("v1/ConfigMap", "elsewhere-prices") is None
    cluster.delete("example.com/v1/Shop", "elsewhere")
