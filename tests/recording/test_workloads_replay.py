"""Tests of workloads in a recording: our controllers create the same pods and compute the same hashes."""

from __future__ import annotations

import gzip
import itertools
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ctrlmgr.testing.replays import Replayer
from tests.recording.samples import WORKLOADS, write_lines

QUOTAS = "replicasets-005"
Line = dict[str, Any]


@pytest.fixture
def replay(tmp_path: Path) -> Iterator[Replayer]:
    with Replayer(tmp_path) as replayer:
        yield replayer


def recorded() -> list[Line]:
    return [json.loads(line) for line in gzip.decompress(WORKLOADS.read_bytes()).splitlines()]


def test_the_controllers_reach_the_recorded_state(replay: Replayer) -> None:
    report = replay(WORKLOADS)
    assert report.divergences == ()
    assert report.checkpoints > 90
    assert report.objects_compared > 2_000
    assert report.writes > 400
    # Objects of controllers have the names and uids of the recording, and there are no additional objects.
    made = {line["object"]["metadata"]["uid"] for line in recorded() if line["type"] == "ADDED"}
    assert {event.object.uid for event in replay.log.scan() if event.type.name == "ADDED"} <= made
    writers = {event.actor.rpartition(":")[2] for event in replay.log.scan() if event.reconcile}
    assert writers == {
        "cronjob-controller",
        "daemon-set-controller",
        "deployment-controller",
        "disruption-controller",
        "job-controller",
        "replicaset-controller",
        "replication-controller",
        "statefulset-controller",
    }


def test_every_replay_produces_the_same_log(replay: Replayer, tmp_path: Path) -> None:
    first = replay(WORKLOADS)
    again = replay(WORKLOADS, database=f"sqlite:///{tmp_path / 'log.db'}")
    assert (first.revision, first.hash) == (again.revision, again.hash)


def watched() -> list[Line]:
    """Return the events of the recording in the form in which a watch would have sent them."""
    told = {"type", "object", "recordedAt"}
    return [{name: value for name, value in line.items() if name in told} for line in recorded()]


def test_a_watch_without_authors_is_sufficient(replay: Replayer, tmp_path: Path) -> None:
    assert replay(write_lines(tmp_path / "watched.jsonl", watched())).divergences == ()


def test_a_quota_can_be_charged_before_its_object_appears(replay: Replayer, tmp_path: Path) -> None:
    """Kubernetes writes the ResourceQuota before the pod; ctrlmgr writes both objects in one append."""
    lines, swapped = watched(), 0
    for place, (line, after) in enumerate(itertools.pairwise(lines)):
        made, quota = line["object"], after["object"]
        if (line["type"], made["kind"], quota["kind"]) == ("ADDED", "Pod", "ResourceQuota"):
            earlier, later = made["metadata"]["resourceVersion"], quota["metadata"]["resourceVersion"]
            made["metadata"]["resourceVersion"], quota["metadata"]["resourceVersion"] = later, earlier
            lines[place : place + 2] = [after, line]
            swapped += 1
    assert swapped > 3
    assert replay(write_lines(tmp_path / "swapped.jsonl", lines)).divergences == ()


def doctored(change: Callable[[Line], bool]) -> list[Line]:
    """Return the recorded lines after a change of the first line for which `change` returns true."""
    lines = recorded()
    assert any(change(line) for line in lines), "there is such a line"
    return lines


def _is_scaled(line: Line) -> bool:
    """Change the recording so that a user requested one pod more than the recorded controllers created."""
    obj = line["object"]
    if obj["kind"] == "Deployment" and line.get("actor") == "system:admin" and line["type"] == "ADDED":
        obj["spec"]["replicas"] += 1
        return True
    return False


def _is_renamed(line: Line) -> bool:
    """Change the template hash in the labels of a recorded pod."""
    obj = line["object"]
    if obj["kind"] == "Pod" and line["type"] == "ADDED" and "replicaset" in line["actor"]:
        obj["metadata"]["labels"]["pod-template-hash"] = "another"
        return True
    return False


@pytest.mark.parametrize("change", [_is_scaled, _is_renamed])
def test_writes_that_contradict_the_recorded_controllers_diverge(
    replay: Replayer, tmp_path: Path, change: Callable[[Line], bool]
) -> None:
    assert replay(write_lines(tmp_path / "doctored.jsonl", doctored(change))).divergences


def test_without_a_controller_its_writes_are_inputs(replay: Replayer) -> None:
    report = replay(WORKLOADS, ["deployment-controller"])
    assert {each.resource for each in report.divergences} <= {"deployments.apps", "replicasets.apps"}
    assert {event.actor.rpartition(":")[2] for event in replay.log.scan() if event.reconcile} == {
        "deployment-controller"
    }
