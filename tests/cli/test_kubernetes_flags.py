"""Tests that `ctrlmgr serve` accepts command lines of Kubernetes' programs, or prints one line with the reason for
which it refuses a command line.
"""

from __future__ import annotations

import signal
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

import pytest
import yaml
from click.testing import CliRunner

from ctrlmgr import cli
from ctrlmgr.cli import ctrlmgr
from ctrlmgr.clock import SystemClock
from ctrlmgr.http.tls import ensure_certificates, issue_client_certificate
from ctrlmgr.http.tls_context import LOOPBACK
from ctrlmgr.testing import FakeClock
from ctrlmgr.testing.served import ServerProcess
from tests.cli.test_serve import serving, until
from tests.framework.served import HttpsCluster, wait_until


def kubeadms_api_server(folder: Path) -> list[str]:
    """Return the flags in kubeadm's manifest of kube-apiserver, with their files in `folder`, and some more."""
    clock = FakeClock(SystemClock().now())
    files = ensure_certificates(folder, ["api.example.com"], clock=clock)
    for name in ("apiserver-kubelet-client", "front-proxy-client"):
        certificate, key = issue_client_certificate(files, name, ["kubeadm:cluster-admins"], clock=clock)
        (folder / f"{name}.crt").write_bytes(certificate)
        (folder / f"{name}.key").write_bytes(key)
    return [
        "--advertise-address=192.0.2.10",
        "--allow-privileged=true",
        "--authorization-mode=Node,RBAC",
        f"--client-ca-file={files.authority}",
        "--enable-admission-plugins=NodeRestriction",
        "--enable-bootstrap-token-auth=true",
        f"--etcd-cafile={files.authority}",
        "--etcd-certfile=/etc/kubernetes/pki/apiserver-etcd-client.crt",
        "--etcd-keyfile=/etc/kubernetes/pki/apiserver-etcd-client.key",
        "--etcd-servers=https://127.0.0.1:2379",
        f"--kubelet-client-certificate={folder}/apiserver-kubelet-client.crt",
        f"--kubelet-client-key={folder}/apiserver-kubelet-client.key",
        "--kubelet-preferred-address-types=InternalIP,ExternalIP,Hostname",
        f"--proxy-client-cert-file={folder}/front-proxy-client.crt",
        f"--proxy-client-key-file={folder}/front-proxy-client.key",
        "--requestheader-allowed-names=front-proxy-client",
        f"--requestheader-client-ca-file={files.authority}",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-username-headers=X-Remote-User",
        "--secure-port=6443",
        "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
        f"--service-account-key-file={files.serving}",
        f"--service-account-signing-key-file={files.serving_key}",
        "--service-cluster-ip-range=10.96.0.0/16",
        f"--tls-cert-file={files.serving}",
        f"--tls-private-key-file={files.serving_key}",
        "--feature-gates=EnvFiles=false,ContainerStopSignals=true",
        "--event-ttl=30m",
        "--logtostderr",
        "--profiling=false",
        "--v=2",
    ]


def test_serve_accepts_the_flags_of_kubeadm(tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    with serving(tmp_path, f"--ready-file={ready}", *kubeadms_api_server(tmp_path / "given")) as served:
        kubeconfig = tmp_path / "kubeconfig"
        until(kubeconfig.exists)
        cluster = yaml.safe_load(kubeconfig.read_text())["clusters"][0]["cluster"]
        assert cluster["tls-server-name"] == LOOPBACK
        until(ready.exists)
        code, said = served.end(signal.SIGTERM)
        assert code == 0
        warnings = [line for line in said.splitlines() if line.startswith("warning: ")]
        etcd = ["--etcd-cafile", "--etcd-certfile", "--etcd-keyfile", "--etcd-servers"]
        assert [line.split()[1] for line in warnings] == [*etcd, "--logtostderr"]


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


REMOVED = (
    "--enable-taint-manager",
    "--experimental-cluster-signing-duration=1h",
    "--pod-eviction-timeout=5m",
)
"""Flags that kube-controller-manager had in earlier releases."""


def kubeadms_controller_manager(server: ServerProcess, port: int) -> list[str]:
    """Return the flags in kubeadm's manifest of kube-controller-manager, with the files of `server`."""
    pki = server.kubeconfig.parent / "pki"
    return [
        "--allocate-node-cidrs=true",
        f"--authentication-kubeconfig={server.kubeconfig}",
        f"--authorization-kubeconfig={server.kubeconfig}",
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        f"--client-ca-file={pki}/ca.crt",
        "--cluster-cidr=10.244.0.0/16",
        "--cluster-name=kubernetes",
        f"--cluster-signing-cert-file={pki}/ca.crt",
        f"--cluster-signing-key-file={pki}/ca.key",
        "--controllers=*,bootstrapsigner,tokencleaner",
        f"--kubeconfig={server.kubeconfig}",
        "--leader-elect=true",
        f"--requestheader-client-ca-file={pki}/ca.crt",
        f"--root-ca-file={pki}/ca.crt",
        f"--service-account-private-key-file={pki}/sa.key",
        "--service-cluster-ip-range=10.96.0.0/16",
        "--use-service-account-credentials=true",
    ]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as bound:
        return int(bound.getsockname()[1])


def status(port: int, path: str, token: str = "") -> tuple[int, str]:
    """Return the code and the body of a page of the controllers; the code is 0 if the server is not reachable."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    request = Request(f"https://127.0.0.1:{port}{path}", headers=headers)
    trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    try:
        with urlopen(request, timeout=30, context=trusting) as answer:
            return answer.status, answer.read().decode()
    except HTTPError as error:
        return error.code, error.read().decode()
    except URLError:
        return 0, ""


@contextmanager
def controllers(command: list[str]) -> Iterator[list[str]]:
    """Run `serve` with these flags; afterwards the yielded list contains the lines that the process printed."""
    said: list[str] = []
    run = [sys.executable, "-m", "ctrlmgr", "serve", *command]
    with subprocess.Popen(run, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield said
        finally:
            process.send_signal(signal.SIGTERM)
            said += process.communicate(timeout=30)[1].splitlines()
    assert process.returncode == 0, said
    assert not any("Traceback" in line for line in said), said


def warned(said: list[str]) -> set[str]:
    """Return the flags of which the process warned."""
    return {line.split()[1] for line in said if line.startswith("warning: ")}


def test_serve_runs_controllers_with_the_flags_of_kubeadm(tmp_path: Path) -> None:
    with ServerProcess(tmp_path, "--database", "memory:", "--api-only") as server:
        cluster, port = HttpsCluster(server), free_port()
        cluster.ask("POST", "/apis/apps/v1/namespaces/default/replicasets", REPLICA_SET)
        assert cluster.ask("GET", PODS)["items"] == []
        with controllers([*kubeadms_controller_manager(server, port), *REMOVED]) as said:
            until(lambda: status(port, "/healthz") == (200, "ok"))
            until(lambda: status(port, "/readyz") == (200, "ok"))
            wait_until(lambda: len(cluster.ask("GET", PODS)["items"]) == 2)
            assert status(port, "/metrics")[0] == 403
            assert status(port, "/metrics", "wrong")[0] == 401
            assert "workqueue_depth" in status(port, "/metrics", server.token)[1]
            leases = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
            assert cluster.ask("GET", f"{leases}/kube-controller-manager")["spec"]["holderIdentity"]
            wait_until(lambda: cluster.is_served("/api/v1/namespaces/default/configmaps/kube-root-ca.crt"))
            assert cluster.is_served("/api/v1/namespaces/kube-system/serviceaccounts/replicaset-controller")
        assert warned(said) >= {flag.partition("=")[0] for flag in REMOVED}


def test_serve_runs_controllers_with_flags_of_earlier_releases(tmp_path: Path) -> None:
    with ServerProcess(tmp_path, "--database", "memory:", "--api-only") as server:
        port = free_port()
        older = ["--port=0", "--address=127.0.0.1", "--cloud-provider=external", "--logtostderr=true"]
        command = [f"--kubeconfig={server.kubeconfig}", f"--secure-port={port}", "--leader-elect=false"]
        command.append("--authorization-always-allow-paths=/readyz,/met*")
        with controllers([*command, *older, *REMOVED]) as said:
            until(lambda: status(port, "/readyz") == (200, "ok"))
            assert status(port, "/metrics")[0] == 200
        assert warned(said) >= {"--address", *(flag.partition("=")[0] for flag in REMOVED)}


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--egress-selector-config-file=e.yaml"], "--egress-selector-config-file=e.yaml: the server "),
        (["--feature-gates=Nope=true"], "--feature-gates: unrecognized feature gate: Nope"),
        (["--leader-elect-resource-lock=endpoints"], "--leader-elect-resource-lock=endpoints: "),
        (["--use-service-account-credentials=false"], "--use-service-account-credentials=false needs --kubeconfig: "),
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
