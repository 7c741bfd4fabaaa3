from __future__ import annotations

from tests.e2e.kubectl import Kubectl
from tests.e2e.serving import until
from tests.e2e.workloads.test_rollouts import APP, labelled


def test_a_job_runs_to_completion(kubectl: Kubectl) -> None:
    kubectl(f"create job once --image={APP}:1")
    assert kubectl("wait --for=condition=complete job/once --timeout=20s") == "job.batch/once condition met\n"
    assert kubectl.get("job once")["status"]["succeeded"] == 1
    (pod,) = kubectl.get("pods")["items"]
    assert "finalizers" not in pod["metadata"]


def test_a_cron_job_is_triggered_manually(kubectl: Kubectl) -> None:
    kubectl(f"create cronjob nightly --image={APP}:1 --schedule='0 3 * * *' --restart=Never")
    kubectl("create job now --from=cronjob/nightly")
    kubectl("wait --for=condition=complete job/now --timeout=20s")
    job = kubectl.get("job now")
    assert job["metadata"]["annotations"]["cronjob.kubernetes.io/instantiate"] == "manual"
    assert job["metadata"]["ownerReferences"][0]["kind"] == "CronJob"


def test_a_node_is_drained_within_its_budgets(kubectl: Kubectl) -> None:
    kubectl(f"create deployment web --image={APP}:1 --replicas=4")
    kubectl("rollout status deployment web --timeout=20s")
    kubectl("create -f -", labelled("DaemonSet", "agent"))
    kubectl("rollout status daemonset agent --timeout=20s")
    kubectl("create poddisruptionbudget web --selector=app=web --min-available=3")
    until(lambda: kubectl.get("pdb web").get("status", {}).get("disruptionsAllowed") == 1)
    on_it = "--field-selector=spec.nodeName=node-a -l app=web"
    assert len(kubectl.get(f"pods {on_it}")["items"]) == 2
    try:
        told = kubectl("drain node-a --ignore-daemonsets --timeout=25s")
        assert "node/node-a drained" in told
        assert kubectl.get(f"pods {on_it}")["items"] == []
        assert len(kubectl.get("pods -l app=web")["items"]) == 4
        assert kubectl.get("pods --field-selector=spec.nodeName=node-a -l app=agent")["items"]
    finally:
        kubectl("uncordon node-a")
    kubectl("scale deployment web --replicas=3")
    until(lambda: kubectl.get("pdb web")["status"]["disruptionsAllowed"] == 0)
    name = kubectl.get("pods -l app=web")["items"][0]["metadata"]["name"]
    refused = {"kind": "Eviction", "apiVersion": "policy/v1", "metadata": {"name": name}}
    path = f"/api/v1/namespaces/{kubectl.namespace}/pods/{name}/eviction"
    assert "violate the pod's disruption budget" in kubectl.fails(f"create --raw {path} -f -", refused)
