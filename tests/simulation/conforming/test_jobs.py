"""What the conformance tests of Jobs and CronJobs ask (sig-apps), in their words."""

from __future__ import annotations

from typing import Any

import pytest

from tests.simulation.conforming.cluster import Cluster, Thing, condition, container, pod

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
    """Wait until a job has ended in a certain way, and return its status."""
    cluster.until(lambda: condition(cluster.get("jobs", name), how).get("status") == "True", within=1800)
    found: Thing = cluster.get("jobs", name)["status"]
    return found


def test_should_create_pods_for_an_indexed_job_with_completion_indexes_and_specified_hostname(cluster: Cluster) -> None:
    cluster.make("jobs", job("indexed", "exit 0", completions=4, parallelism=2, completionMode="Indexed"))
    assert ended(cluster, "indexed", "Complete")["completedIndexes"] == "0-3"
    pods = cluster.all("pods")
    index = "batch.kubernetes.io/job-completion-index"
    assert sorted(each["metadata"]["annotations"][index] for each in pods) == ["0", "1", "2", "3"]
    assert {each["spec"]["hostname"] for each in pods} == {f"indexed-{number}" for number in range(4)}


def test_should_execute_all_indexes_despite_some_failing_when_using_backoff_limit_per_index(cluster: Cluster) -> None:
    script = f"exit $(( ${INDEX} % 2 ))"
    body = job("per", script, completions=4, parallelism=4, completionMode="Indexed", backoffLimitPerIndex=1)
    cluster.make("jobs", body)
    status = ended(cluster, "per", "Failed")
    assert (status["failedIndexes"], status["completedIndexes"]) == ("1,3", "0,2")
    assert (status["failed"], status["succeeded"]) == (4, 2)
    assert condition({"status": status}, "Failed")["reason"] == "FailedIndexes"


def test_should_terminate_job_execution_when_the_number_of_failed_indexes_exceeds_max_failed_indexes(
    cluster: Cluster,
) -> None:
    limits: Thing = {"completionMode": "Indexed", "backoffLimitPerIndex": 0, "maxFailedIndexes": 0}
    cluster.make(
        "jobs", job("max", f"if [ ${INDEX} -eq 0 ]; then exit 1; fi; sleep 999", completions=4, parallelism=4, **limits)
    )
    status = ended(cluster, "max", "Failed")
    assert condition({"status": status}, "Failed")["reason"] == "MaxFailedIndexesExceeded"
    assert status["failedIndexes"] == "0"


def test_should_mark_indexes_as_failed_when_the_fail_index_action_is_matched_in_pod_failure_policy(
    cluster: Cluster,
) -> None:
    rule = {"action": "FailIndex", "onExitCodes": {"operator": "In", "values": [42]}}
    script = f"if [ ${INDEX} -eq 1 ]; then exit 42; fi; exit 0"
    more: Thing = {"completionMode": "Indexed", "backoffLimitPerIndex": 3, "podFailurePolicy": {"rules": [rule]}}
    cluster.make("jobs", job("failindex", script, completions=2, parallelism=2, **more))
    status = ended(cluster, "failindex", "Failed")
    assert (status["failedIndexes"], status["completedIndexes"], status["failed"]) == ("1", "0", 1)


def test_should_allow_to_use_the_pod_failure_policy_on_exit_code_to_fail_the_job_early(cluster: Cluster) -> None:
    rule = {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [1]}}
    cluster.make("jobs", job("early", "exit 1", backoffLimit=10, podFailurePolicy={"rules": [rule]}))
    status = ended(cluster, "early", "Failed")
    assert condition({"status": status}, "Failed")["reason"] == "PodFailurePolicy"
    assert len(cluster.all("pods")) == 1


def test_should_allow_to_use_a_pod_failure_policy_to_ignore_failure_matching_on_disruption_target_condition(
    cluster: Cluster,
) -> None:
    rule = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
    cluster.make("jobs", job("ignore", "sleep 60", backoffLimit=0, podFailurePolicy={"rules": [rule]}))
    cluster.until(lambda: len(cluster.ready("job=ignore")) == 1)
    name = cluster.pods("job=ignore")[0]["metadata"]["name"]
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
    assert cluster.send("POST", cluster.path("pods", f"{name}/eviction"), eviction).code == 201
    cluster.until(lambda: [each["metadata"]["name"] for each in cluster.pods("job=ignore")] not in ([], [name]))
    ended(cluster, "ignore", "Complete")


def test_should_run_a_job_to_completion_when_tasks_sometimes_fail_and_are_locally_restarted(cluster: Cluster) -> None:
    script = "if [ -f /data/foo ]; then exit 0; else touch /data/foo; exit 1; fi"
    cluster.make("jobs", job("local", script, policy="OnFailure", completions=4, parallelism=2))
    assert ended(cluster, "local", "Complete")["succeeded"] == 4
    restarts = [each["status"]["containerStatuses"][0]["restartCount"] for each in cluster.all("pods")]
    assert restarts == [1, 1, 1, 1]


@pytest.mark.parametrize(
    ("title", "rule", "succeeded"),
    [
        ("should succeeded when all indexes succeeded", {"succeededIndexes": "0-1"}, 2),
        ("succeededIndexes rule should succeeded even when some indexes remain pending", {"succeededIndexes": "0"}, 1),
        ("succeededCount rule should succeeded even when some indexes remain pending", {"succeededCount": 1}, 1),
    ],
)
def test_with_success_policy(cluster: Cluster, title: str, rule: Thing, succeeded: int) -> None:
    waits = f"if [ ${INDEX} -ne 0 ]; then sleep 9999; fi; exit 0"
    script = "exit 0" if succeeded == 2 else waits
    more: Thing = {"completionMode": "Indexed", "successPolicy": {"rules": [rule]}}
    cluster.make("jobs", job("success", script, completions=2, parallelism=2, **more))
    status = ended(cluster, "success", "Complete")
    assert condition({"status": status}, "SuccessCriteriaMet")["reason"] == "SuccessPolicy", title
    assert status["succeeded"] == succeeded
    cluster.until(lambda: len(cluster.all("pods")) == succeeded)


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
    cluster.make("jobs", job("status", "", completions=1))
    cluster.until(lambda: cluster.get("jobs", "status")["status"].get("ready") == 1)
    start = cluster.get("jobs", "status")["status"]["startTime"]
    mark = {"type": "CustomConditionType", "status": "True"}
    patched = cluster.patch("jobs", "status/status", {"status": {"conditions": [mark]}})
    assert condition(patched, "CustomConditionType")
    assert patched["status"]["startTime"] == start


def test_should_manage_the_lifecycle_of_a_job(cluster: Cluster) -> None:
    cluster.make("jobs", job("life", "", parallelism=2, suspend=True))
    cluster.pass_by(5)
    assert cluster.all("pods") == []
    cluster.patch("jobs", "life", {"metadata": {"labels": {"patched": "yes"}}, "spec": {"suspend": False}})
    cluster.until(lambda: len(cluster.ready("job=life")) == 2)
    found = cluster.get("jobs", "life")
    found["metadata"].setdefault("annotations", {})["updated"] = "true"
    cluster.replace("jobs", "life", found)
    path = cluster.path("jobs")
    policy = {"propagationPolicy": "Foreground"}
    cluster.send("DELETE", path, policy, query={"labelSelector": "patched=yes"})
    cluster.until(lambda: not cluster.all("jobs") and not cluster.all("pods"))


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
