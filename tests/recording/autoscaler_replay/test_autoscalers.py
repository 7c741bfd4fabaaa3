"""Tests of autoscalers in a replayed recording: our decisions equal the recorded decisions if the recording contains
the metrics.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ctrlmgr.controllers.horizontal_pod_autoscaler import DESCRIPTOR
from ctrlmgr.recording.autoscaler_replay.repeated_decision import MEASURED, REMEMBERED, UNMEASURED
from ctrlmgr.recording.capture.export import history, is_api_object
from ctrlmgr.recording.format import RecordingWriter
from ctrlmgr.recording.report import Report
from ctrlmgr.testing.replays import Replayer
from tests.controllers.horizontal_pod_autoscaler.measured import pod_body
from tests.controllers.horizontal_pod_autoscaler.scaled import AutoscalerStage
from tests.recording.samples import write_lines

Line = dict[str, Any]


@pytest.fixture
def stage() -> AutoscalerStage:
    return AutoscalerStage()


@pytest.fixture
def replay(tmp_path: Path) -> Iterator[Callable[[list[Line]], Report]]:
    with Replayer(tmp_path) as replayer:
        # No controller reconciles the Deployments here.
        yield lambda lines: replayer(
            write_lines(tmp_path / "played.jsonl", lines), ["endpoints-controller"], must_compare=False
        )


def recorded(stage: AutoscalerStage, path: Path) -> list[Line]:
    """Return a recording of the log."""
    with RecordingWriter(path / "stage.jsonl") as writer:
        for change in history(stage.log, lambda obj: is_api_object(obj.resource)):
            writer.change(*change)
    text = (path / "stage.jsonl").read_text()
    for name, real in (("system:controller:tested", DESCRIPTOR.user), ('"unknown"', '"kube-controller-manager"')):
        text = text.replace(name, real)
    return [json.loads(line) for line in text.splitlines()]


def is_status(line: Line) -> bool:
    return (line["object"]["kind"], line["type"]) == ("HorizontalPodAutoscaler", "MODIFIED")


def up_and_down(stage: AutoscalerStage) -> None:
    stage.web(2)
    stage.measures.cpu = [1000, 1000]
    stage.autoscaler()
    stage.next_period()  # usage is twice the target, so two replicas become four
    stage.measures.cpu = [100, 100]
    for _ in range(25):
        stage.next_period()  # stabilized, and scaled down five minutes later


def test_a_replay_repeats_the_recorded_decisions(
    stage: AutoscalerStage, replay: Callable[[list[Line]], Report], tmp_path: Path
) -> None:
    up_and_down(stage)
    lines = recorded(stage, tmp_path)
    report = replay(lines)
    assert report.divergences == ()
    written = sum(map(is_status, lines))
    assert report.decisions_compared + sum(each.count for each in report.unjudged) == written
    assert report.decisions_compared >= 3
    # The recording does not show to the second whether the highest recommendation still counted at the scale-down.
    assert {each.reason for each in report.unjudged} <= {REMEMBERED}


def test_a_watch_without_audit_events_suffices(
    stage: AutoscalerStage, replay: Callable[[list[Line]], Report], tmp_path: Path
) -> None:
    up_and_down(stage)
    lines = recorded(stage, tmp_path)
    for line in lines:
        line.pop("actor", None)
        line.pop("reconcile", None)
    report = replay(lines)
    assert report.divergences == ()
    assert report.decisions_compared >= 3


def number(status: dict[str, Any]) -> None:
    status["desiredReplicas"] += 1


def reason(status: dict[str, Any]) -> None:
    status["conditions"][-1]["reason"] = "TooManyReplicas"


def measurement(status: dict[str, Any]) -> None:
    status["currentMetrics"][0]["resource"]["current"] = {"averageUtilization": 55, "averageValue": "550m"}


@pytest.mark.parametrize("change", [number, reason, measurement])
def test_a_different_decision_diverges(
    stage: AutoscalerStage,
    replay: Callable[[list[Line]], Report],
    tmp_path: Path,
    change: Callable[[dict[str, Any]], None],
) -> None:
    stage.web(2)
    stage.measures.cpu = [1000, 1000]
    stage.autoscaler()
    stage.next_period()
    lines = recorded(stage, tmp_path)
    change(next(line for line in lines if is_status(line))["object"]["status"])
    (divergence,) = replay(lines).divergences
    assert divergence.subject == "horizontalpodautoscalers.autoscaling a/hpa"
    assert divergence.checkpoint.startswith("line ")


def test_unmeasured_metrics_are_counted(
    stage: AutoscalerStage, replay: Callable[[list[Line]], Report], tmp_path: Path
) -> None:
    stage.web(2)
    stage.autoscaler()
    stage.next_period()
    report = replay(recorded(stage, tmp_path))
    assert report.divergences == ()
    assert report.decisions_compared == 0
    assert [(each.name, each.reason, each.count) for each in report.unjudged] == [("hpa", UNMEASURED, 1)]


def test_newly_started_pods_can_be_unmeasured(
    stage: AutoscalerStage, replay: Callable[[list[Line]], Report], tmp_path: Path
) -> None:
    stage.web(1)
    body = pod_body("p1", age=1, ready_age=1)
    status = {"status": body.pop("status")}
    stage.create("/api/v1/namespaces/a/pods", body)
    stage.patch("/api/v1/namespaces/a/pods/p1/status", status)
    stage.measures.cpu = [1000, 1000]
    stage.autoscaler()
    stage.next_period()
    report = replay(recorded(stage, tmp_path))
    assert report.divergences == ()
    assert [(each.reason, each.count) for each in report.unjudged] == [(MEASURED, 1)]


def test_decisions_at_the_bounds_need_no_metrics(
    stage: AutoscalerStage, replay: Callable[[list[Line]], Report], tmp_path: Path
) -> None:
    stage.web(5)
    stage.autoscaler(maxReplicas=3)
    stage.next_period()
    report = replay(recorded(stage, tmp_path))
    assert (report.divergences, report.decisions_compared) == ((), 1)


def test_decisions_before_the_recording_are_unknown(
    stage: AutoscalerStage, replay: Callable[[list[Line]], Report], tmp_path: Path
) -> None:
    """The autoscaler desires fewer replicas, but it may have made a higher recommendation just before the recording
    began.
    """
    stage.web(4)
    stage.measures.cpu = [100, 100, 100, 100]
    stage.autoscaler()
    stage.next_period()
    lines = recorded(stage, tmp_path)
    for line in lines:
        if line["type"] == "ADDED" and line["object"]["kind"] == "HorizontalPodAutoscaler":
            line["object"]["status"] = {"currentReplicas": 4, "desiredReplicas": 4, "conditions": [{"type": "Old"}]}
    report = replay(lines)
    assert report.divergences == ()
    assert [each.reason for each in report.unjudged] == [REMEMBERED]


@pytest.mark.parametrize(
    ("metric", "measured"),
    [
        ({"type": "Pods", "pods": {"metric": {"name": "rps"}, "target": {"type": "AverageValue", "averageValue": "5"}}},
         {"rps": [8000, 9001]}),
        ({"type": "External",
          "external": {"metric": {"name": "q"}, "target": {"type": "AverageValue", "averageValue": "5"}}},
         {"queue": [30_000]}),
        ({"type": "External", "external": {"metric": {"name": "q"}, "target": {"type": "Value", "value": "5"}}},
         {"queue": [15_000]}),
        ({"type": "Object", "object": {
            "metric": {"name": "hits"}, "target": {"type": "Value", "value": "10"},
            "describedObject": {"kind": "Service", "name": "s", "apiVersion": "v1"}}},
         {"length": 25_000}),
    ],
    ids=["pods", "external-average", "external", "object"],
)  # fmt: skip
def test_all_kinds_of_metrics_are_reported(
    stage: AutoscalerStage,
    replay: Callable[[list[Line]], Report],
    tmp_path: Path,
    metric: dict[str, Any],
    measured: dict[str, Any],
) -> None:
    stage.web(2)
    for name, value in measured.items():
        setattr(stage.measures, name, value)
    stage.autoscaler(metrics=[metric])
    stage.next_period()
    assert stage.replicas() > 2
    report = replay(recorded(stage, tmp_path))
    assert (report.divergences, report.unjudged, report.decisions_compared) == ((), (), 1)
