from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.e2e.kubectl import Kubectl
from tests.e2e.serving import Server, until
from tests.e2e.workloads.test_rollouts import APP, images


def command_output(server: Server, *command: str) -> str:
    database = f"sqlite:///{server.kubeconfig.parent / 'ctrlmgr.db'}"
    line = [sys.executable, "-m", "ctrlmgr", *command, "--database", database]
    done = subprocess.run(line, capture_output=True, text=True, cwd=Path(__file__).parents[3], check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_why_leads_from_a_pod_to_the_edit_that_caused_it(server: Server, kubectl: Kubectl) -> None:
    kubectl(f"create deployment web --image={APP}:1")
    kubectl("rollout status deployment web --timeout=20s")
    kubectl(f"set image deployment/web app={APP}:2")
    kubectl("rollout status deployment web --timeout=20s")
    until(lambda: images(kubectl) == ["2"])
    (pod,) = [each for each in kubectl.get("pods")["items"] if "deletionTimestamp" not in each["metadata"]]
    name = pod["metadata"]["name"]
    created = json.loads(command_output(server, "history", f"pod/{name}", "-n", kubectl.namespace, "-o", "json"))[0][
        "revision"
    ]
    tree = command_output(server, "why", f"pod/{name}", "-n", kubectl.namespace, "--at", str(created))
    places = [tree.index(each) for each in ("replicaset-controller", "deployment-controller", "kubectl")]
    assert places == sorted(places), tree


def test_a_rollout_is_explained_step_by_step(server: Server, kubectl: Kubectl) -> None:
    kubectl(f"create deployment web --image={APP}:1 --replicas=2")
    kubectl("rollout status deployment web --timeout=20s")
    kubectl(f"set image deployment/web app={APP}:2")
    kubectl("rollout status deployment web --timeout=20s")
    until(lambda: images(kubectl) == ["2", "2"])
    until(lambda: len(kubectl.get("pods")["items"]) == 2)
    text = command_output(server, "rollout", "deployment/web", "-n", kubectl.namespace)
    assert f'image: "{APP}:1" → "{APP}:2"' in text
    assert text.endswith("The rollout is complete.\n"), text
    for step in (
        "created (new)",
        "bound to node-",
        " ready",
        "deletion requested (old)",
        " deleted",
        "to be ready; 2 of 2",
    ):
        assert step in text, text
    plain = json.loads(command_output(server, "rollout", "deployment", "web", "-n", kubectl.namespace, "-o", "json"))
    assert plain["complete"]
    assert any("unavailable" in each["waitedFor"] for each in plain["steps"])


def test_a_stalled_rollout_names_its_cause(server: Server, kubectl: Kubectl) -> None:
    kubectl(f"create deployment web --image={APP}:1")
    kubectl("rollout status deployment web --timeout=20s")
    kubectl(f"set image deployment/web app={APP}:broken")
    until(lambda: images(kubectl) == ["1", "broken"])
    text = command_output(server, "rollout", "deployment/web", "-n", kubectl.namespace)
    last = text.splitlines()[-1]
    assert last.startswith("The rollout waits for web-")
    assert last.endswith("to be ready; 1 of 1 ready, at most 0 unavailable; 2 pods, at most 1 surplus."), text
