"""Tests of a Job's policies: pod failure policies, success policies, and back-off after failures."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from ctrlmgr.api.object import Object
from ctrlmgr.controllers.job.indexes import FAILURES, IGNORED_FAILURES, Intervals
from ctrlmgr.controllers.job.job_backoff import FIRST, LONGEST, Backoff, ready_indexes, recalled, remaining_for_index
from ctrlmgr.controllers.job.job_policies import Verdict, judge, met_rule
from ctrlmgr.controllers.job.view import FailurePolicy, JobPod, SuccessPolicy

SECOND = 1_000_000
START = 1_767_225_600 * SECOND


def failed(code: int = 1, name: str = "c", *, conditions: Any = (), init: Any = (), **metadata: Any) -> JobPod:
    ended = {"terminated": {"exitCode": code, "finishedAt": "2026-01-01T00:00:00Z"}}
    status = {
        "phase": "Failed",
        "containerStatuses": [{"name": name, "state": ended}],
        "initContainerStatuses": list(init),
        "conditions": list(conditions),
    }
    head = {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "p", "namespace": "a", **metadata}}
    return JobPod(Object.from_dict({**head, "status": status}))


def policy(*rules: dict[str, Any]) -> FailurePolicy:
    return msgspec.convert({"rules": list(rules)}, FailurePolicy)


def codes(action: str, *values: int, operator: str = "In", **fields: Any) -> dict[str, Any]:
    return {"action": action, "onExitCodes": {"operator": operator, "values": list(values), **fields}}


DISRUPTED = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}


@pytest.mark.parametrize(
    ("rules", "pod", "verdict"),
    [
        ([], failed(), Verdict()),
        ([codes("Count", 1)], failed(1), Verdict(True, "Count")),
        ([codes("FailIndex", 7)], failed(7), Verdict(True, "FailIndex")),
        ([codes("Ignore", 7), codes("FailJob", 7)], failed(7), Verdict(False, "Ignore")),
        ([codes("Ignore", 7, operator="NotIn")], failed(7), Verdict()),
        ([codes("Ignore", 8, operator="NotIn")], failed(7), Verdict(False, "Ignore")),
        ([codes("Ignore", 7, containerName="other")], failed(7), Verdict()),
        ([codes("Ignore", 0, operator="NotIn")], failed(0), Verdict()),  # no rule matches a container that succeeded
        (
            [DISRUPTED, codes("FailJob", 42)],
            failed(42, conditions=[{"type": "DisruptionTarget", "status": "True"}]),
            Verdict(False, "Ignore"),
        ),
        (
            [DISRUPTED, codes("FailJob", 42)],
            failed(42, conditions=[{"type": "DisruptionTarget", "status": "False"}]),
            Verdict(
                True, "FailJob", "Container c for pod a/p failed with exit code 42 matching FailJob rule at index 1"
            ),
        ),
        (
            [{"action": "FailJob", "onPodConditions": [{"type": "Bad", "status": "True"}]}],
            failed(conditions=[{"type": "Bad", "status": "True"}]),
            Verdict(True, "FailJob", "Pod a/p has condition Bad matching FailJob rule at index 0"),
        ),
        (
            [codes("FailJob", 3)],
            failed(0, init=[{"name": "i", "state": {"terminated": {"exitCode": 3}}}]),
            Verdict(
                True, "FailJob", "Container i for pod a/p failed with exit code 3 matching FailJob rule at index 0"
            ),
        ),
    ],
)
def test_the_first_matching_rule_decides(rules: list[dict[str, Any]], pod: JobPod, verdict: Verdict) -> None:
    assert judge(policy(*rules), pod) == verdict


def test_without_a_policy_every_failure_counts() -> None:
    assert judge(None, failed()) == Verdict()


@pytest.mark.parametrize(
    ("rules", "succeeded", "expected"),
    [
        ([{"succeededCount": 2}], [0], None),
        ([{"succeededCount": 2}], [0, 3], 0),
        ([{"succeededIndexes": "1-3"}], [1, 2], None),
        ([{"succeededIndexes": "1-3"}], [0, 1, 2, 3], 0),
        ([{"succeededIndexes": "1-3", "succeededCount": 2}], [1, 3], 0),
        ([{"succeededIndexes": "1-3", "succeededCount": 2}], [0, 3, 4], None),
        ([{"succeededCount": 5}, {"succeededIndexes": "0"}], [0], 1),
        ([{"succeededIndexes": "0,2,4-6"}], [0, 2, 3, 4, 5, 6], 0),
        ([{"succeededIndexes": "20"}], [0], None),  # more than the completions
        ([{"succeededCount": 0}], [], None),
    ],
)
def test_a_success_policy_counts_succeeded_indexes(
    rules: list[dict[str, Any]], succeeded: list[int], expected: int | None
) -> None:
    assert met_rule(msgspec.convert({"rules": rules}, SuccessPolicy), 10, Intervals.of(succeeded)) == expected


NOT_READY = {"type": "Ready", "status": "False", "lastTransitionTime": "2026-01-01T00:00:07Z"}


def ended(seconds: int, code: int = 1) -> JobPod:
    at = f"2026-01-01T00:{seconds // 60:02d}:{seconds % 60:02d}Z"
    state = {"terminated": {"exitCode": code, "finishedAt": at}}
    head = {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "p", "namespace": "a"}}
    status = {"phase": "Failed" if code else "Succeeded", "containerStatuses": [{"name": "c", "state": state}]}
    return JobPod(Object.from_dict({**head, "status": status}))


def test_consecutive_failures_are_counted_since_the_last_success() -> None:
    waited = Backoff().after([], [ended(10), ended(5)])
    assert waited == Backoff(2, START + 10 * SECOND)
    assert waited.after([], [ended(20)]) == Backoff(3, START + 20 * SECOND)
    assert waited.after([], []) == waited
    assert waited.after([ended(30, 0)], []) == Backoff()
    assert waited.after([ended(30, 0)], [ended(20), ended(40), ended(30)]) == Backoff(1, START + 40 * SECOND)


@pytest.mark.parametrize(
    ("failures", "wait"),
    [(0, 0), (1, FIRST), (2, 2 * FIRST), (6, 32 * FIRST), (7, LONGEST), (10_000, LONGEST)],
)
def test_the_backoff_doubles_up_to_ten_minutes(failures: int, wait: int) -> None:
    assert Backoff(failures, START).remaining(START) == wait
    assert Backoff(failures, START).remaining(START + 3 * SECOND) == max(0, wait - 3 * SECOND)
    assert Backoff(failures, START).remaining(START + LONGEST) == 0


def test_each_index_has_a_separate_backoff() -> None:
    twice = failed(1, annotations={FAILURES: "1", IGNORED_FAILURES: "1"})
    assert remaining_for_index(None, START) == 0
    assert remaining_for_index(twice, START) == 4 * FIRST  # the third failure in a row
    once = failed(1, annotations={FAILURES: "0"})
    assert ready_indexes([0, 1, 2], {0: twice, 2: once}, START) == ([1], 0)
    assert ready_indexes([0, 2], {0: twice, 2: once}, START) == ([], FIRST)


@pytest.mark.parametrize(
    ("pod", "seconds"),
    [
        ({"status": {"containerStatuses": [{"name": "c", "state": {"running": {}}}]}}, 0),
        (
            {
                "metadata": {"deletionTimestamp": "2026-01-01T00:01:00Z", "deletionGracePeriodSeconds": 30},
                "status": {},
            },
            30,
        ),
        (
            {
                "status": {
                    "conditions": [{"type": "Ready", "status": "False", "lastTransitionTime": "2026-01-01T00:00:07Z"}]
                }
            },
            7,
        ),
    ],
)
def test_the_end_of_a_pod_without_a_finish_time_is_estimated(pod: dict[str, Any], seconds: int) -> None:
    metadata = {"name": "p", "namespace": "a", "creationTimestamp": "2026-01-01T00:00:00Z", **pod.get("metadata", {})}
    found = JobPod(Object.from_dict({"kind": "Pod", "apiVersion": "v1", "metadata": metadata, "status": pod["status"]}))
    assert found.finished_at == START + seconds * SECOND


def test_the_backoff_is_restored_from_the_counted_pods() -> None:
    counted, held = failed(), failed(finalizers=["batch.kubernetes.io/job-tracking"])
    assert recalled([counted, counted, held]) == Backoff(2, counted.finished_at)
    succeeded = JobPod(Object.from_dict({**counted.object.to_dict(), "status": {"phase": "Succeeded"}}))
    assert recalled([succeeded]) == Backoff()
