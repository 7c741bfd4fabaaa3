"""Tests of volumes and devices in a recording: our controllers make the same writes as the recorded controllers."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ctrlmgr.testing.replays import Replayer
from tests.recording.samples import write_lines

RECORDINGS = Path(__file__).parents[1] / "recordings"
VOLUMES = RECORDINGS / "volumes.jsonl.gz"
"""A recording of `tests.recording.volume_recording`, on simulated nodes."""
CLAIMS = RECORDINGS / "claims.jsonl.gz"
"""A recording of the scenarios `volumes`, `resourceclaims` and `pv` with `tests.scenario_recordings`."""

Line = dict[str, Any]


@pytest.fixture
def replay(tmp_path: Path) -> Iterator[Replayer]:
    with Replayer(tmp_path) as replayer:
        yield replayer


def recorded(recording: Path) -> list[Line]:
    return [json.loads(line) for line in gzip.decompress(recording.read_bytes()).splitlines()]


def writers(replay: Replayer) -> set[str]:
    return {event.actor.rpartition(":")[2] for event in replay.log.scan() if event.reconcile}


@pytest.mark.parametrize(("recording", "checkpoints"), [(VOLUMES, 19), (CLAIMS, 78)])
def test_the_controllers_reach_the_recorded_state(replay: Replayer, recording: Path, checkpoints: int) -> None:
    report = replay(recording)
    assert report.divergences == ()
    assert report.checkpoints == checkpoints
    assert report.writes > 100


def test_every_controller_of_the_recording_acts(replay: Replayer) -> None:
    replay(VOLUMES)
    assert writers(replay) >= {
        "attachdetach-controller",
        "device-taint-eviction-controller",
        "ephemeral-volume-controller",
        "persistent-volume-binder",
        "podgroup-protection-controller",
        "pv-protection-controller",
        "pvc-protection-controller",
        "resource-claim-controller",
        "volumeattributesclass-protection-controller",
    }


@pytest.mark.parametrize("recording", [VOLUMES, CLAIMS])
def test_a_watch_without_authors_is_sufficient(replay: Replayer, tmp_path: Path, recording: Path) -> None:
    told = {"type", "object", "recordedAt"}
    lines = [{name: value for name, value in line.items() if name in told} for line in recorded(recording)]
    assert replay(write_lines(tmp_path / "watched.jsonl", lines)).divergences == ()


@pytest.mark.parametrize(
    ("kind", "controller"),
    [
        ("PersistentVolume", "persistent-volume-binder"),
        ("ResourceClaimTemplate", "resource-claim-controller"),
        ("VolumeAttachment", "attachdetach-controller"),
    ],
)
def test_without_a_needed_kind_the_writes_of_its_controllers_are_inputs(
    replay: Replayer, tmp_path: Path, kind: str, controller: str
) -> None:
    lines = [line for line in recorded(VOLUMES) if line["object"]["kind"] != kind]
    report = replay(write_lines(tmp_path / "partial.jsonl", lines))
    assert report.divergences == ()
    assert controller not in writers(replay)


def _is_bound_elsewhere(line: Line) -> bool:
    """Change the recording so that the binder bound a claim to another volume."""
    obj = line["object"]
    if obj["kind"] == "PersistentVolumeClaim" and obj["metadata"]["name"] == "old" and obj["spec"].get("volumeName"):
        obj["spec"]["volumeName"] = "other"
        return True
    return False


def _is_reserved(line: Line) -> bool:
    """Change the recording so that an unused claim is still allocated."""
    obj = line["object"]
    is_release = line.get("actor", "").endswith("resource-claim-controller") and obj["kind"] == "ResourceClaim"
    if is_release and obj["metadata"]["name"] == "shared":
        obj["status"] = {"allocation": {"devices": {}}}
        return True
    return False


def _is_attached(line: Line) -> bool:
    """Change the recording so that all volumes are attached to another node."""
    if line["object"]["kind"] == "VolumeAttachment":
        line["object"]["spec"]["nodeName"] = "elsewhere"
        return True
    return False


@pytest.mark.parametrize("change", [_is_bound_elsewhere, _is_reserved, _is_attached])
def test_writes_that_contradict_the_recorded_controllers_diverge(
    replay: Replayer, tmp_path: Path, change: Callable[[Line], bool]
) -> None:
    lines = recorded(VOLUMES)
    assert sum(map(change, lines)), "there is such a line"
    assert replay(write_lines(tmp_path / "doctored.jsonl", lines)).divergences
