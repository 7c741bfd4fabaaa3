"""Tests that `ctrlmgr serve` accepts command lines of Kubernetes' programs, or prints one line with the reason for
which it refuses a command line.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from ctrlmgr import cli
from ctrlmgr.cli import ctrlmgr
from ctrlmgr.http.tls import ensure_certificates
from ctrlmgr.http.tls_context import LOOPBACK
from ctrlmgr.testing import FakeClock
from ctrlmgr.testing.served import ServerProcess
from tests.cli.test_serve import serving, until
from tests.framework.served import HttpsCluster, wait_until

LIKE_A_MANIFEST = (
    "--allow-privileged=true",
    "--authorization-mode=Node,RBAC",
    "--cloud-provider=external",
    "--enable-bootstrap-token-auth=true",
    "--etcd-servers=https://127.0.0.1:2379",
    "--event-ttl=30m",
    "--feature-gates=EnvFiles=false,ContainerStopSignals=true",
    "--leader-elect-resource-lock=leases",
    "--logtostderr",
    "--profiling=false",
    "--service-cluster-ip-range=10.96.0.0/16",
    "--use-service-account-credentials=true",
    "--v=2",
)


def test_serve_accepts_the_flags_of_kubeadm(tmp_path: Path) -> None:
    from ctrlmgr.clock import SystemClock

    given = ensure_certificates(tmp_path / "given", ["api.example.com"], clock=FakeClock(SystemClock().now()))
    tls = (f"--tls-cert-file={given.serving}", f"--tls-private-key-file={given.serving_key}")
    with serving(tmp_path, *LIKE_A_MANIFEST, *tls) as served:
        kubeconfig = tmp_path / "kubeconfig"
        until(kubeconfig.exists)
        cluster = yaml.safe_load(kubeconfig.read_text())["clusters"][0]["cluster"]
        assert cluster["tls-server-name"] == LOOPBACK
        code, said = served.end(signal.SIGTERM)
        assert code == 0
        warnings = [line for line in said.splitlines() if line.startswith("warning: ")]
        assert [line.split()[1] for line in warnings] == ["--etcd-servers", "--logtostderr"]


REPLICA_SET = {
    "apiVersion": "apps/v1",
    "kind": "ReplicaSet",
    "metadata": {"name": "web"},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "web", "image": "web"}]},
        },
    },
}
PODS = "/api/v1/namespaces/default/pods?labelSelector=app%3Dweb"


def test_controllers_run_separately_against_another_server(tmp_path: Path) -> None:
    with ServerProcess(tmp_path, "--database", "memory:", "--api-only") as server:
        cluster = HttpsCluster(server)
        cluster.ask("POST", "/apis/apps/v1/namespaces/default/replicasets", REPLICA_SET)
        assert cluster.ask("GET", PODS)["items"] == []
        command = [sys.executable, "-m", "ctrlmgr", "serve", "--kubeconfig", str(server.kubeconfig)]
        with subprocess.Popen([*command, "--leader-elect=false"], stderr=subprocess.PIPE, text=True) as controllers:
            wait_until(lambda: len(cluster.ask("GET", PODS)["items"]) == 2)
            controllers.send_signal(signal.SIGTERM)
            _, said = controllers.communicate(timeout=30)
            assert controllers.returncode == 0, said
            assert "Traceback" not in said, said


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--egress-selector-config-file=e.yaml"], "--egress-selector-config-file is not supported: the server "),
        (["--feature-gates=Nope=true"], "--feature-gates: unrecognized feature gate: Nope"),
        (["--leader-elect-resource-lock=endpoints"], "--leader-elect-resource-lock=endpoints: "),
        (["--master=192.0.2.10"], "--master is '192.0.2.10'; it must be a URL such as https://192.0.2.10:6443"),
        (["--tls-cert-file=a.crt"], "--tls-cert-file and --tls-private-key-file must be given together"),
    ],
)
def test_unsupported_flags_are_refused_in_one_line(
    arguments: list[str], problem: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(["serve", "--data-dir", str(tmp_path), *arguments]) == cli.ExitCode.USAGE
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"error: {problem}")


def test_the_version_is_printed() -> None:
    finished = CliRunner().invoke(ctrlmgr, ["serve", "--version"])
    assert (finished.exit_code, finished.output.split()[0]) == (0, "ctrlmgr")
