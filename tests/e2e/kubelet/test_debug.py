"""Tests of kubectl debug, attach and run -i --rm on a node with a kubelet.

The tests themselves write the statuses of the pods that kubectl creates.
"""

from __future__ import annotations

import subprocess
from typing import Any

from tests.e2e.kubectl import Kubectl
from tests.e2e.kubelet.conftest import create_pod
from tests.e2e.kubelet.small_kubelet import SmallKubelet
from tests.e2e.serving import DEADLINE, Server, until


def report(server: Server, namespace: str, pod: str, **status: Any) -> None:
    """Write the status of a pod."""
    path = f"/api/v1/namespaces/{namespace}/pods/{pod}/status"
    code, answer = server.request("PATCH", path, {"status": status})
    assert code == 200, answer


def running(name: str) -> list[dict[str, Any]]:
    """Return the container statuses of a pod with one running container."""
    return [{"name": name, "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}]


def spoken(process: subprocess.Popen[str], text: str) -> str:
    """Send a string to a shell, close the shell's input, and return its output."""
    out, _ = process.communicate(text, timeout=DEADLINE)
    return out


def test_attach_reaches_a_running_container(kubectl: Kubectl, kubelet: SmallKubelet, namespace: str) -> None:
    assert kubectl("attach -i real", "echo from $((40 + 2))\n") == "from 42\n"
    assert kubelet.asked[-1].startswith(f"GET /attach/{namespace}/real/main?")


def test_debug_adds_an_ephemeral_container(
    server: Server, kubectl: Kubectl, kubelet: SmallKubelet, namespace: str
) -> None:
    create_pod(server, namespace, "sick", "real")
    before = kubectl.get("pod sick")
    command = "debug sick -i --image=busybox --target=main --container=debugger -- sh"
    with kubectl.started(command) as process:
        until(lambda: "ephemeralContainers" in kubectl.get("pod sick")["spec"])
        report(server, namespace, "sick", ephemeralContainerStatuses=running("debugger"))
        assert spoken(process, "echo found it\n").endswith("found it\n")
    assert kubelet.asked[-1].startswith(f"GET /attach/{namespace}/sick/debugger?")
    pod = kubectl.get("pod sick")
    [added] = pod["spec"]["ephemeralContainers"]
    assert (added["targetContainerName"], added["command"], added["stdin"]) == ("main", ["sh"], True)
    assert pod["metadata"]["generation"] == before["metadata"]["generation"] + 1
    kubelet.log = b"of the debugger\n"
    assert kubectl("logs sick -c debugger") == "of the debugger\n"
    assert kubelet.asked[-1].startswith(f"GET /containerLogs/{namespace}/sick/debugger?")
    assert kubectl("exec sick -c debugger -- echo hello") == "hello\n"


def test_ephemeral_containers_are_only_added(server: Server, kubectl: Kubectl, namespace: str) -> None:
    create_pod(server, namespace, "kept", "real")
    path = f"/api/v1/namespaces/{namespace}/pods/kept/ephemeralcontainers"

    def put(*containers: dict[str, Any]) -> tuple[int, str]:
        code, pod = server.request("GET", path)
        assert code == 200, pod
        pod["spec"]["ephemeralContainers"] = list(containers)
        code, answer = server.request("PUT", path, pod)
        return code, answer.get("message", "")

    one = {"name": "one", "image": "busybox"}
    assert put(one)[0] == 200
    code, message = put()
    assert (code, 'existing ephemeral containers "one" may not be removed' in message) == (422, True)
    code, message = put({**one, "image": "alpine"})
    assert (code, 'existing ephemeral containers "one" may not be changed' in message) == (422, True)
    code, message = put(one, {"name": "main", "image": "busybox"})
    assert (code, 'spec.ephemeralContainers[1].name: Duplicate value: "main"' in message) == (422, True)
    probe = {"httpGet": {"port": 80}}
    code, message = put(one, {"name": "two", "image": "busybox", "livenessProbe": probe})
    assert (code, "livenessProbe: Forbidden: cannot be set for an Ephemeral Container" in message) == (422, True)
    code, message = put(one, {"name": "two", "image": "busybox", "targetContainerName": "absent"})
    assert (code, 'targetContainerName: Not found: "absent"' in message) == (422, True)


def test_debug_of_a_node_creates_a_pod_on_it(server: Server, kubectl: Kubectl, namespace: str) -> None:
    with kubectl.started("debug node/real -i --image=busybox -- sh") as process:
        until(lambda: "node-debugger-real-" in kubectl("get pods -o name"))
        [name] = [each for each in kubectl("get pods -o name").split() if "node-debugger" in each]
        name = name.removeprefix("pod/")
        report(server, namespace, name, phase="Running", containerStatuses=running("debugger"))
        assert spoken(process, "echo on the node\n").endswith("on the node\n")
    spec = kubectl.get(f"pod {name}")["spec"]
    assert (spec["nodeName"], spec["hostNetwork"], spec["hostPID"]) == ("real", True, True)


def test_run_removes_its_pod_after_the_command(server: Server, kubectl: Kubectl, namespace: str) -> None:
    overrides = '{"spec": {"nodeName": "real"}}'
    command = f"run once -i --rm --restart=Never --image=busybox --overrides='{overrides}' -- sh"
    with kubectl.started(command) as process:
        until(lambda: kubectl.run("get pod once").code == 0)
        ready = [{"type": "Ready", "status": "True"}]
        report(server, namespace, "once", phase="Running", conditions=ready, containerStatuses=running("once"))
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("echo in the pod\n")
        process.stdin.close()
        assert process.stdout.readline() == "in the pod\n"
        ended = {"terminated": {"exitCode": 0, "finishedAt": "2026-01-01T00:00:01Z"}}
        report(server, namespace, "once", phase="Succeeded", containerStatuses=[{"name": "once", "state": ended}])
        assert process.stdout.read().startswith('pod "once" deleted')
        assert process.wait(DEADLINE) == 0
    assert kubectl.run("get pod once").code == 1
