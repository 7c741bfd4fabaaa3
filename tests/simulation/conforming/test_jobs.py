"""Kubernetes' conformance tests of Jobs and CronJobs (group sig-apps)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.simulation.conforming.cluster import STRATEGIC, Cluster, Thing, condition, container, pod

INDEX = "JOB_COMPLETION_INDEX"


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def job(name: str, script: str, *, policy: str = "Never", **spec: Any) -> Thing:
    mount = {"name": "data", "mountPath": "/data"}
    containers = [container(script, volumeMounts=[mount])] if script else [container()]
    body = {"restartPolicy": policy, "containers": containers, "volumes": [{"name": "data", "emptyDir": {}}]}
    labels = {"job": name}
    return {"metadata": {"name": name}, "spec": {"template": {"metadata": {"labels": labels}, "spec": body}, **spec}}


def ended(cluster: Cluster, name: str, how: str) -> Thing:
    """Wait until a Job has the final condition `how`, and return the Job's status."""
    cluster.until(lambda: condition(cluster.get("jobs", name), how).get("status") == "True", within=1800)
    found: Thing = cluster.get("jobs", name)["status"]
    return found


ODD_FAIL = f"""
if [ $(expr ${{{INDEX}}} % 2) -ne 0 ]; then
  exit 1
else
  exit 0
fi
"""
"""The shell script failOddSucceedEven of Kubernetes' tests."""
FAIL_ONCE = """
if [[ -r /data/foo ]]
then
  exit 0
else
  touch /data/foo
  exit 1
fi
"""
WAIT_ONCE = f"""
if [[ -r /data/foo ]]
then
  exit 0
elif [[ ${INDEX} -eq 0 ]]
then
  touch /data/foo
  sleep 1000000
else
  exit 1
fi
"""
"""The shell script notTerminateOnce of Kubernetes' tests: the first pod with index 0 keeps running, and all other pods
fail until the first pod has written its file.
"""


def on_node(body: Thing, node: str = "node-1") -> Thing:
    """Return a Job whose pods run on one node, with a folder of this node as their volume."""
    spec = body["spec"]["template"]["spec"]
    spec["nodeSelector"] = {"kubernetes.io/hostname": node}
    spec["volumes"] = [{"name": "data", "hostPath": {"path": "/tmp/job-e2e/1", "type": "DirectoryOrCreate"}}]
    return body


def first_ended(cluster: Cluster, name: str, interim: tuple[str, str], how: str) -> Thing:
    """Wait until a Job has ended; before its end, the Job must have a condition with the given reason."""
    status = ended(cluster, name, how)
    stages = [each["status"] for each in cluster.history("jobs", name) if "status" in each]
    at = next(index for index, each in enumerate(stages) if condition({"status": each}, interim[0]))
    assert condition({"status": stages[at]}, interim[0]).get("reason", "") == interim[1]
    over = next(index for index, each in enumerate(stages) if condition({"status": each}, how))
    assert at <= over
    return status


def test_should_create_pods_for_an_indexed_job_with_completion_indexes_and_specified_hostname(cluster: Cluster) -> None:
    cluster.make("jobs", job("indexed", "exit 0", completions=4, parallelism=2, completionMode="Indexed"))
    assert ended(cluster, "indexed", "Complete")["completedIndexes"] == "0-3"
    pods = [each for each in cluster.all("pods") if each["status"]["phase"] == "Succeeded"]
    index = "batch.kubernetes.io/job-completion-index"
    hosts = {each["metadata"]["annotations"][index]: each["spec"]["hostname"] for each in pods}
    assert hosts == {str(number): f"indexed-{number}" for number in range(4)}


def test_should_execute_all_indexes_despite_some_failing_when_using_backoff_limit_per_index(cluster: Cluster) -> None:
    body = job("per", ODD_FAIL, completions=4, parallelism=2, completionMode="Indexed", backoffLimitPerIndex=1)
    cluster.make("jobs", body)
    status = first_ended(cluster, "per", ("FailureTarget", "FailedIndexes"), "Failed")
    assert (status["failedIndexes"], status["completedIndexes"]) == ("1,3", "0,2")
    assert (status["failed"], status["succeeded"]) == (4, 2)


def test_should_terminate_job_execution_when_the_number_of_failed_indexes_exceeds_max_failed_indexes(
    cluster: Cluster,
) -> None:
    limits: Thing = {"completionMode": "Indexed", "backoffLimitPerIndex": 0, "maxFailedIndexes": 0}
    cluster.make("jobs", job("max", "exit 1", completions=4, parallelism=1, **limits))
    status = first_ended(cluster, "max", ("FailureTarget", "MaxFailedIndexesExceeded"), "Failed")
    assert (status["failedIndexes"], status["failed"]) == ("0", 1)


def test_should_mark_indexes_as_failed_when_the_fail_index_action_is_matched_in_pod_failure_policy(
    cluster: Cluster,
) -> None:
    rule = {"action": "FailIndex", "onExitCodes": {"operator": "In", "values": [1]}}
    more: Thing = {"completionMode": "Indexed", "backoffLimitPerIndex": 1, "podFailurePolicy": {"rules": [rule]}}
    cluster.make("jobs", job("failindex", ODD_FAIL, completions=2, parallelism=2, **more))
    status = first_ended(cluster, "failindex", ("FailureTarget", "FailedIndexes"), "Failed")
    assert (status["failedIndexes"], status["completedIndexes"]) == ("1", "0")
    assert (status["failed"], status["succeeded"]) == (1, 1)


def test_should_allow_to_use_the_pod_failure_policy_on_exit_code_to_fail_the_job_early(cluster: Cluster) -> None:
    rule = {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [1]}}
    body = job("early", FAIL_ONCE, completions=4, parallelism=2, podFailurePolicy={"rules": [rule]})
    cluster.make("jobs", on_node(body))
    assert first_ended(cluster, "early", ("FailureTarget", "PodFailurePolicy"), "Failed")


def test_should_allow_to_use_the_pod_failure_policy_to_not_count_the_failure_towards_the_backoff_limit(
    cluster: Cluster,
) -> None:
    rule = {"action": "Ignore", "onExitCodes": {"operator": "In", "values": [1]}}
    body = job("uncounted", FAIL_ONCE, completions=4, parallelism=2, backoffLimit=0, podFailurePolicy={"rules": [rule]})
    cluster.make("jobs", on_node(body))
    assert first_ended(cluster, "uncounted", ("SuccessCriteriaMet", "CompletionsReached"), "Complete")["succeeded"] == 4


def test_should_allow_to_use_a_pod_failure_policy_to_ignore_failure_matching_on_disruption_target_condition(
    cluster: Cluster,
) -> None:
    policy = [
        {"action": "Ignore", "onExitCodes": {"operator": "In", "values": [1]}},
        {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
    ]
    more: Thing = {"completionMode": "Indexed", "podFailurePolicy": {"rules": policy}}
    body = on_node(job("ignore", WAIT_ONCE, completions=4, parallelism=2, backoffLimit=0, **more))
    body["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = 1
    cluster.make("jobs", body)
    cluster.until(lambda: cluster.get("jobs", "ignore")["status"].get("succeeded") == 3, within=600)
    (running,) = [each for each in cluster.pods("job=ignore") if each["status"]["phase"] == "Running"]
    name = running["metadata"]["name"]
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
    assert cluster.send("POST", cluster.path("pods", f"{name}/eviction"), eviction).code == 201
    cluster.until(lambda: cluster.find("pods", name) is None)
    status = first_ended(cluster, "ignore", ("SuccessCriteriaMet", "CompletionsReached"), "Complete")
    assert (status["succeeded"], status["completedIndexes"]) == (4, "0-3")


@pytest.mark.parametrize("policy", ["OnFailure", "Never"])
def test_should_run_a_job_to_completion_when_tasks_sometimes_fail(cluster: Cluster, policy: str) -> None:
    """Containers are either restarted locally, with a volume of each pod, or not restarted, with a folder of their
    node.
    """
    body = job("once", FAIL_ONCE, policy=policy, completions=4, parallelism=2)
    cluster.make("jobs", on_node(body) if policy == "Never" else body)
    assert first_ended(cluster, "once", ("SuccessCriteriaMet", "CompletionsReached"), "Complete")["succeeded"] == 4
    if policy == "OnFailure":
        restarts = [each["status"]["containerStatuses"][0]["restartCount"] for each in cluster.all("pods")]
        assert restarts == [1, 1, 1, 1]


@pytest.mark.parametrize(
    ("title", "script", "rule", "completions"),
    [
        ("should succeeded when all indexes succeeded", "exit 0", {"succeededIndexes": "0-4"}, 5),
        (
            "succeededIndexes rule, even when some remain pending",
            ODD_FAIL,
            {"succeededIndexes": "0"},
            1,
        ),
        (
            "succeededCount rule, even when some remain pending",
            ODD_FAIL,
            {"succeededCount": 1},
            1,
        ),
    ],
)
def test_with_success_policy(cluster: Cluster, title: str, script: str, rule: Thing, completions: int) -> None:
    more: Thing = {"completionMode": "Indexed", "successPolicy": {"rules": [rule]}, "backoffLimit": 2**31 - 1}
    cluster.make("jobs", job("success", script, completions=5, parallelism=2, **more))
    status = first_ended(cluster, "success", ("SuccessCriteriaMet", "SuccessPolicy"), "Complete")
    assert condition({"status": status}, "Complete")["reason"] == "SuccessPolicy", title
    assert (status["succeeded"], status["completedIndexes"]) == (completions, "0-4" if completions == 5 else "0")
    assert (status.get("active", 0), status["ready"], status["terminating"]) == (0, 0, 0)
    assert completions == 1 or not status.get("failed")


def test_should_delete_a_job(cluster: Cluster) -> None:
    cluster.make("jobs", job("foo", "", completions=2, parallelism=2))
    cluster.until(lambda: len(cluster.ready("job=foo")) == 2)
    cluster.delete("jobs", "foo", propagationPolicy="Background")
    cluster.until(lambda: cluster.find("jobs", "foo") is None and not cluster.all("pods"))


def test_should_adopt_matching_orphans_and_release_non_matching_pods(cluster: Cluster) -> None:
    cluster.make("jobs", job("adopt", "", completions=2, parallelism=2))
    cluster.until(lambda: len(cluster.ready("job=adopt")) == 2)
    name = cluster.pods()[0]["metadata"]["name"]
    owners = cluster.get("pods", name)["metadata"]["ownerReferences"]
    cluster.patch("pods", name, {"metadata": {"ownerReferences": None}})
    cluster.until(lambda: cluster.get("pods", name)["metadata"].get("ownerReferences") == owners)
    labels = dict.fromkeys(cluster.get("pods", name)["metadata"]["labels"])
    cluster.patch("pods", name, {"metadata": {"labels": labels}})
    cluster.until(lambda: not cluster.get("pods", name)["metadata"].get("ownerReferences"))


def test_should_apply_changes_to_a_job_status(cluster: Cluster) -> None:
    made = cluster.make("jobs", job("status", "", completions=4, parallelism=2))
    cluster.until(lambda: cluster.get("jobs", "status")["status"].get("ready") == 2)
    start = cluster.get("jobs", "status")["status"]["startTime"]
    mark = {"type": "CustomConditionType", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    body = {"metadata": {"annotations": {"patchedstatus": "true"}}, "status": {"conditions": [mark]}}
    patched = cluster.patch("jobs", "status/status", body)
    assert condition(patched, "CustomConditionType")["lastTransitionTime"] == "2026-01-01T00:00:00Z"
    assert patched["metadata"]["annotations"]["patchedstatus"] == "true"
    assert patched["status"]["startTime"] == start
    found = cluster.get("jobs", "status")
    condition(found, "CustomConditionType")["lastTransitionTime"] = "2026-01-02T00:00:00Z"
    updated = cluster.replace("jobs", "status/status", found)
    assert condition(updated, "CustomConditionType")["lastTransitionTime"] == "2026-01-02T00:00:00Z"
    assert cluster.get("jobs", "status/status")["metadata"]["uid"] == made["metadata"]["uid"]


def test_should_manage_the_lifecycle_of_a_job(cluster: Cluster) -> None:
    body = job("life", "exit 0", completions=4, parallelism=2, suspend=True)
    body["metadata"]["labels"] = {"e2e-job-label": "life"}
    cluster.make("jobs", body)
    cluster.pass_by(5)
    assert cluster.all("pods") == []
    patched = cluster.patch("jobs", "life", {"metadata": {"labels": {"life": "patched"}}}, STRATEGIC)
    assert patched["metadata"]["labels"]["life"] == "patched"
    found = cluster.get("jobs", "life")
    found["spec"]["suspend"] = False
    found["metadata"].setdefault("annotations", {})["updated"] = "true"
    assert cluster.replace("jobs", "life", found)["metadata"]["annotations"]["updated"] == "true"
    assert [each["metadata"]["name"] for each in cluster.all("jobs", "e2e-job-label=life")] == ["life"]
    assert ended(cluster, "life", "Complete")["succeeded"] == 4
    policy = {"propagationPolicy": "Background"}
    cluster.send("DELETE", cluster.path("jobs"), policy, query={"labelSelector": "e2e-job-label=life"})
    cluster.until(lambda: not cluster.all("jobs", "e2e-job-label=life") and not cluster.all("pods"))


# CronJobs


def cron(policy: str, script: str = "sleep 300") -> Thing:
    inner = job("x", script, policy="OnFailure")["spec"]
    spec = {"schedule": "*/1 * * * *", "concurrencyPolicy": policy, "jobTemplate": {"spec": inner}}
    return {"metadata": {"name": "cron"}, "spec": spec}


def test_cron_job_should_not_schedule_new_jobs_when_forbid_concurrent(cluster: Cluster) -> None:
    cluster.make("cronjobs", cron("Forbid"))
    cluster.until(lambda: len(cluster.all("jobs")) == 1)
    cluster.pass_by(150)
    assert len(cluster.all("jobs")) == 1
    assert len(cluster.get("cronjobs", "cron")["status"]["active"]) == 1


def test_cron_job_should_replace_jobs_when_replace_concurrent(cluster: Cluster) -> None:
    cluster.make("cronjobs", cron("Replace"))
    cluster.until(lambda: len(cluster.all("jobs")) == 1)
    first = cluster.all("jobs")[0]["metadata"]["name"]
    cluster.until(lambda: [each["metadata"]["name"] for each in cluster.all("jobs")] not in ([], [first]))
    cluster.pass_by(5)
    assert len(cluster.get("cronjobs", "cron")["status"]["active"]) == 1


def test_cron_job_should_schedule_multiple_jobs_concurrently(cluster: Cluster) -> None:
    cluster.make("cronjobs", cron("Allow"))
    cluster.until(lambda: len(cluster.get("cronjobs", "cron")["status"].get("active") or ()) >= 2, within=200)
    cluster.until(lambda: len(cluster.ready()) >= 2, within=10)


def test_kubectl_run_pod_should_create_a_pod_from_an_image_when_restart_is_never(cluster: Cluster) -> None:
    body = pod("e2e-test-httpd-pod", {"name": "httpd", "image": "httpd:2.4"}, restartPolicy="Never")
    cluster.make("pods", body)
    cluster.until(lambda: cluster.phase("e2e-test-httpd-pod") == "Running")
