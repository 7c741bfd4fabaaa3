"""Tests of the metrics of webhook calls, with the names and labels of kube-apiserver."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest
from prometheus_client import REGISTRY, generate_latest

from ctrlmgr.engine.calls.call import Reply
from tests.admission.webhooks.hooked import WebhookCluster, allow, deny, patch

NUMBERS = count()
NOWHERE = {"op": "add", "path": "/metadata/labels/x", "value": "y"}
"""A JSON patch that adds a label to an object without labels."""


def counted(name: str) -> set[str]:
    """Return the exposed series of a webhook's calls, except the series of durations."""
    found = set()
    for line in generate_latest(REGISTRY).decode().splitlines():
        series = line.removeprefix("apiserver_admission_webhook_")
        if f'name="{name}"' in series and not series.startswith("admission_duration") and "_created" not in series:
            found.add(series.replace(f'name="{name}",', ""))
    return found


def metric_labels(code: int, *, rejected: bool) -> str:
    told = str(rejected).lower()
    return f'request_total{{code="{code}",operation="CREATE",rejected="{told}",type="admit"}} 1.0'


def refused(kind: str, code: int) -> str:
    return f'rejection_count{{error_type="{kind}",operation="CREATE",rejection_code="{code}",type="admit"}} 1.0'


@pytest.mark.parametrize(
    ("answer", "kind", "code"),
    [
        pytest.param(deny(code=418), "no_error", 418, id="denies"),
        pytest.param(deny(code=70000), "no_error", 600, id="denies with an odd code"),
        pytest.param(lambda _: Reply(problem="EOF"), "calling_webhook_error", 503, id="closes"),
        pytest.param(lambda _: Reply(404, "text/plain"), "calling_webhook_error", 404, id="is not there"),
        pytest.param(lambda _: {"uid": "x", "allowed": True}, "calling_webhook_error", 503, id="lies"),
        pytest.param(patch(NOWHERE), "apiserver_internal_error", 0, id="changes what is not there"),
    ],
)
def test_calls_are_counted_by_result(answer: Any, kind: str, code: int) -> None:
    hooked, name = WebhookCluster(m=answer), f"m.example-{next(NUMBERS)}.com"
    hooked.configure("mutating", "c", {"name": name})
    assert hooked.create("x").code >= 400
    assert counted(name) == {refused(kind, code), metric_labels(code, rejected=True)}


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (allow(), {metric_labels(200, rejected=False)}),
        (lambda _: Reply(problem="EOF"), {'fail_open_count{type="admit"} 1.0', metric_labels(503, rejected=False)}),
    ],
)
def test_ignored_failures_are_counted(answer: Any, expected: set[str]) -> None:
    hooked, name = WebhookCluster(m=answer), f"m.example-{next(NUMBERS)}.com"
    hooked.configure("mutating", "c", {"name": name, "failurePolicy": "Ignore"})
    assert hooked.create("x").code == 201
    assert counted(name) == expected


def test_metrics_have_kubernetes_names() -> None:
    hooked, name = WebhookCluster(m=allow()), f"m.example-{next(NUMBERS)}.com"
    hooked.configure("mutating", "c", {"name": name})
    hooked.create("x")
    labels = {"type": "admit", "operation": "CREATE", "rejected": "false"}
    for family in ("webhook_admission_duration_seconds", "controller_admission_duration_seconds"):
        whose = {"name": name if family.startswith("webhook") else "MutatingAdmissionWebhook"}
        assert REGISTRY.get_sample_value(f"apiserver_admission_{family}_count", labels | whose)
    steps = "apiserver_admission_step_admission_duration_seconds"
    for series in (f"{steps}_count", f"{steps}_summary_count", f"{steps}_summary_sum"):
        assert REGISTRY.get_sample_value(series, labels) is not None
