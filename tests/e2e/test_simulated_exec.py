"""Tests of kubectl exec, attach, cp and port-forward with pods on simulated nodes, over WebSocket and over SPDY."""

from __future__ import annotations

import json
import os
import pty
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.clients.websocket_client import connected, messages
from tests.e2e.kubectl import Kubectl, find_kubectl
from tests.e2e.serving import DEADLINE, Server

WAYS = pytest.mark.parametrize("websockets", ["true", "false"], ids=["WebSocket", "SPDY"])


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("cluster"), "--database", "memory:", "--nodes", "1")
    with server.running():
        yield server


@pytest.fixture(scope="module")
def namespace(server: Server, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The name of a namespace with a running pod `web`."""
    name = server.new_namespace()
    kubectl = Kubectl(find_kubectl(), server.kubeconfig, tmp_path_factory.mktemp("home"), name)
    kubectl("run web --image nginx --port 80 --env GREETING=hello")
    kubectl("wait pod web --for condition=Ready --timeout 20s")
    return name


@pytest.fixture
def kubectl(server: Server, namespace: str, tmp_path: Path) -> Kubectl:
    return Kubectl(find_kubectl(), server.kubeconfig, tmp_path, namespace)


@WAYS
def test_exec_runs_the_simulated_shell(kubectl: Kubectl, websockets: str) -> None:
    way = {"KUBECTL_REMOTE_COMMAND_WEBSOCKETS": websockets}
    assert kubectl("exec web -- hostname", **way) == "web\n"
    assert kubectl("exec web -- sh -c 'echo $GREETING | tr a-z A-Z'", **way) == "HELLO\n"
    assert kubectl("exec -i web -- sh", "x=1\necho got $x\n", **way) == "got 1\n"
    assert kubectl("exec -i web -- cat", "some input", **way) == "some input"
    done = kubectl.run("exec web -- sh -c 'echo out; echo err >&2; exit 7'", **way)
    assert (done.code, done.out) == (7, "out\n")
    assert "err\n" in done.err


def test_unsupported_commands_of_the_simulation_are_reported(kubectl: Kubectl) -> None:
    done = kubectl.run("exec web -- nslookup-by-magic")
    assert done.code == 127
    assert "this node is simulated, and the simulation does not know it" in done.err


@WAYS
def test_cp_works_on_simulated_files(kubectl: Kubectl, tmp_path: Path, websockets: str) -> None:
    way = {"KUBECTL_REMOTE_COMMAND_WEBSOCKETS": websockets}
    data = os.urandom(1_000_000)
    (tmp_path / "here").write_bytes(data)
    kubectl(f"cp {tmp_path}/here web:/data-{websockets}", **way)
    assert kubectl(f"exec web -- ls /data-{websockets}", **way) == f"/data-{websockets}\n"
    kubectl(f"cp web:/data-{websockets} {tmp_path}/back", **way)
    assert (tmp_path / "back").read_bytes() == data


def test_an_interactive_shell_has_a_prompt(kubectl: Kubectl) -> None:
    ours, theirs = pty.openpty()
    command = kubectl.line("exec -it web -- sh")
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=kubectl.environment) as process:
        os.close(theirs)
        told, said = b"", dict[str, bytes]()
        while not told.endswith(b"# "):
            told += os.read(ours, 1024)
        told = b""
        for line in ("echo it is $GREETING", "env", "hostname", "echo a > /tmp/f", "cat /tmp/f", "ls /tmp", "ps"):
            os.write(ours, f"{line}\r".encode())
            while not told.endswith(b"# "):
                told += os.read(ours, 4096)
            said[line] = told
            told = b""
        os.write(ours, b"exit 3\r")
        assert process.wait(DEADLINE) == 3
    os.close(ours)
    assert b"it is hello\r\n" in said["echo it is $GREETING"]
    assert b"GREETING=hello\r\n" in said["env"]
    assert b"\nweb\r\n" in said["hostname"]
    assert b"\na\r\n" in said["cat /tmp/f"]
    assert b"\nf\r\n" in said["ls /tmp"]
    assert b"PID   USER" in said["ps"]


@WAYS
def test_a_declared_port_accepts_connections(kubectl: Kubectl, websockets: str) -> None:
    way = {"KUBECTL_PORT_FORWARD_WEBSOCKETS": websockets}
    with kubectl.started("port-forward pod/web :80", **way) as process:
        assert process.stdout is not None
        local = int(process.stdout.readline().split(":")[1].split()[0])
        for _ in range(3):
            with socket.create_connection(("127.0.0.1", local), timeout=10) as client:
                client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
                assert client.recv(4096).endswith(b"\r\n\r\nweb\n")


def test_an_undeclared_port_is_refused(kubectl: Kubectl) -> None:
    with kubectl.started("port-forward pod/web :81") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        local = int(process.stdout.readline().split(":")[1].split()[0])
        with socket.create_connection(("127.0.0.1", local), timeout=10) as client:
            client.sendall(b"GET / HTTP/1.1\r\n\r\n")
            assert client.recv(4096) == b""
        assert "no container declares the port: connection refused" in process.stderr.readline()


def test_attach_follows_the_log(kubectl: Kubectl) -> None:
    out = kubectl("run ticks --image busybox --restart Never -i --rm -- sh -c 'sleep 3; echo one; sleep 1; echo two'")
    assert "two\n" in out


def test_proxies_reach_simulated_pods(kubectl: Kubectl, namespace: str) -> None:
    base = f"/api/v1/namespaces/{namespace}"
    assert kubectl(f"get --raw {base}/pods/web/proxy/") == "web\n"
    assert kubectl(f"get --raw {base}/pods/web:80/proxy/any/path?q=1") == "web\n"
    assert "connect: connection refused" in kubectl.fails(f"get --raw {base}/pods/web:81/proxy/")
    kubectl("expose pod web --name front --port 8080 --target-port 80")
    kubectl("wait endpoints front --for jsonpath={.subsets[0].addresses[0].ip} --timeout 20s")
    assert kubectl(f"get --raw {base}/services/front:8080/proxy/") == "web\n"


def test_the_proxy_of_a_simulated_node_shows_its_kubelet(kubectl: Kubectl, namespace: str) -> None:
    node = kubectl("get nodes -o name").split()[0].removeprefix("node/")
    base = f"/api/v1/nodes/{node}/proxy"
    assert kubectl(f"get --raw {base}/healthz") == "ok"
    pods = json.loads(kubectl(f"get --raw {base}/pods"))
    assert (namespace, "web") in [(each["metadata"]["namespace"], each["metadata"]["name"]) for each in pods["items"]]
    summary = json.loads(kubectl(f"get --raw {base}/stats/summary"))
    assert summary["node"]["nodeName"] == node
    [web] = [each for each in summary["pods"] if each["podRef"]["namespace"] == namespace]
    assert web["memory"]["workingSetBytes"] == web["containers"][0]["memory"]["workingSetBytes"] > 0
    assert "kubelet_running_pods " in kubectl(f"get --raw {base}/metrics")
    assert json.loads(kubectl(f"get --raw {base}/configz"))["kubeletconfig"]["maxPods"] == 110
    assert "could not find" in kubectl.fails(f"get --raw {base}/nonsense")
    log = kubectl("logs web")
    assert kubectl(f"get --raw {base}/containerLogs/{namespace}/web/web") == log


def test_debug_starts_a_container_in_a_simulated_pod(kubectl: Kubectl) -> None:
    command = "debug web -i --image=busybox --target=web --container=debugger -- sh"
    assert kubectl(command, "hostname; exit\n").endswith("web\n")
    pod = kubectl.get("pod web")
    [status] = pod["status"]["ephemeralContainerStatuses"]
    assert (status["name"], "running" in status["state"], status["ready"]) == ("debugger", True, False)
    assert kubectl("exec web -c debugger -- hostname") == "web\n"
    assert kubectl("logs web -c debugger") == ""
    kubectl("debug web --image=busybox --container=short -- sh -c 'echo seen; exit 4'")
    short = "jsonpath={.status.ephemeralContainerStatuses[1].state.terminated.exitCode}=4"
    kubectl(f"wait pod web --for {short} --timeout 20s")
    assert kubectl("logs web -c short") == "seen\n"
    assert "Container started" in kubectl("events --for pod/web")


def test_debug_of_a_simulated_node_runs_a_pod_on_it(kubectl: Kubectl) -> None:
    node = kubectl("get nodes -o name").split()[0]
    out = kubectl(f"debug {node} -i --image=busybox -- sh", "hostname; exit\n")
    assert out.splitlines()[-1].startswith("node-debugger-")


def test_a_log_is_sent_as_websocket_messages(server: Server, kubectl: Kubectl, namespace: str) -> None:
    kubectl("run talks --image busybox --restart Never -- sh -c 'echo one; sleep 1; echo two'")
    kubectl("wait pod talks --for jsonpath={.status.phase}=Running --timeout 20s")
    with connected(server, f"/api/v1/namespaces/{namespace}/pods/talks/log?follow=true") as client:
        assert b"".join(data for _, data in messages(client)) == b"one\ntwo\n"
    with connected(server, f"/api/v1/namespaces/{namespace}/pods/talks/log?tailLines=1") as client:
        assert b"".join(data for _, data in messages(client)) == b"two\n"
