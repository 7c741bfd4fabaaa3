from __future__ import annotations

from random import Random

import pytest

from tests.e2e.kubectl import Kubectl, squeezed
from tests.e2e.serving import Server, until
from tests.e2e.workloads.test_rollouts import APP, images, labelled


def revision(server: Server) -> int:
    return int(server.request("GET", "/api/v1/nodes")[1]["metadata"]["resourceVersion"])


def until_further(server: Server, events: int) -> None:
    """Wait until the log has `count` more events."""
    wanted = revision(server) + events
    until(lambda: revision(server) >= wanted)


@pytest.mark.parametrize("seed", [1, 2])
def test_a_new_process_finishes_the_work_of_a_killed_one(server: Server, kubectl: Kubectl, seed: int) -> None:
    random = Random(seed)
    kubectl(f"create deployment web --image={APP}:1 --replicas=4")
    kubectl("create -f -", labelled("StatefulSet", "db", replicas=2, serviceName="db"))
    kubectl("rollout status deployment web --timeout=20s")
    kubectl("rollout status statefulset db --timeout=20s")
    kubectl(f"set image deployment/web app={APP}:2")
    kubectl(f"set image statefulset/db app={APP}:2")
    kubectl(f"create job many --image={APP}:1")
    for _ in range(2):
        until_further(server, random.randint(3, 25))  # the process is killed at an unknown moment
        server.kill()
        server.start()
    kubectl("rollout status deployment web --timeout=25s")
    kubectl("rollout status statefulset db --timeout=25s")
    kubectl("wait --for=condition=complete job/many --timeout=25s")
    until(lambda: images(kubectl) == ["1"] + ["2"] * 6)
    assert squeezed(kubectl("rollout history deployment web")).splitlines()[2:] == ["1 <none>", "2 <none>"]
    assert len(kubectl.get("replicasets")["items"]) == 2
    assert len(kubectl.get("pods -l job-name=many")["items"]) == 1
