"""Tests of a recording that begins with existing objects: our controllers treat existing objects as if they had written
them.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key, Resource
from ctrlmgr.clock import parse_time
from ctrlmgr.errors import RecordingError
from ctrlmgr.eventlog import EventType
from ctrlmgr.recording.format import Change, Checkpoint, Entry
from ctrlmgr.recording.initial_entries import placed
from ctrlmgr.recording.owned.admission_fields import with_account
from ctrlmgr.testing.replays import Replayer
from tests.recording.samples import WORKLOADS, write_lines

PAST = WORKLOADS.with_name("past.jsonl.gz")
"""A recording that `ctrlmgr record` made of 75 seconds of `ctrlmgr serve --nodes 3`, which had run for a minute before.

When the recording begins, the cluster has these objects: rollouts past their deadline, paused or undone; Jobs partly
done or in back-off; a CronJob, a StatefulSet and a DaemonSet between two revisions; Endpoints, slices and a Service
without a selector; a quota, a budget, an autoscaler; a terminating namespace. During the recording, all these objects
change further.
"""

Line = dict[str, Any]
BEGAN = "2026-01-01T00:00:10.500000Z"


@pytest.fixture
def replay(tmp_path: Path) -> Iterator[Replayer]:
    with Replayer(tmp_path) as replayer:
        yield replayer


def recorded() -> list[Line]:
    return [json.loads(line) for line in gzip.decompress(PAST.read_bytes()).splitlines()]


def of(lines: list[Line], kind: str, name: str) -> list[Line]:
    return [each for each in lines if (each["object"]["kind"], each["object"]["metadata"]["name"]) == (kind, name)]


def test_a_replay_continues_a_cluster_with_a_past(replay: Replayer) -> None:
    report = replay(PAST)
    assert report.divergences == ()
    assert report.objects_compared > 80
    ours = [event for event in replay.log.scan() if event.actor != "recording"]
    kinds = {event.resource.plural for event in ours if event.type is EventType.ADDED}
    assert {"pods", "replicasets", "jobs", "controllerrevisions"} >= kinds >= {"pods", "replicasets", "jobs"}
    # Our controllers create no objects from before the recording; their objects were created during the recording.
    began = parse_time(recorded()[0]["recordedAt"])
    made = [event.object.metadata.creation_timestamp or "" for event in ours if event.type is EventType.ADDED]
    assert min(map(parse_time, made)) >= began - 1_000_000


def test_expected_writes_after_the_past_are_still_compared(replay: Replayer, tmp_path: Path) -> None:
    lines = recorded()
    last = of(lines, "Deployment", "web")[-1]
    last["object"]["metadata"]["annotations"]["deployment.kubernetes.io/revision"] = "99"
    last["object"]["status"]["replicas"] = 17
    report = replay(write_lines(tmp_path / "r.jsonl", lines))
    assert [(each.name, each.resource) for each in report.divergences] == [("web", "deployments.apps")]


def test_a_pod_whose_owner_is_not_recorded_is_an_input(replay: Replayer, tmp_path: Path) -> None:
    lines = [each for each in recorded() if each["object"]["kind"] != "ReplicationController"]
    assert replay(write_lines(tmp_path / "r.jsonl", lines)).divergences == ()


def change(
    name: str, created: str, at: str = BEGAN, type: EventType = EventType.ADDED, line: int = 1, **metadata: Any
) -> Change:
    metadata = {"name": name, "namespace": "a", "creationTimestamp": f"2026-01-01T00:00:{created}Z", **metadata}
    obj = Object.from_dict({"kind": "Pod", "apiVersion": "v1", "metadata": metadata})
    return Change(line, type, obj, parse_time(at) if at else 0)


OLD, NEW, AT_ONCE = change("old", "09"), change("new", "11"), change("at-once", "10")
UNTIMED = change("untimed", "09", "")
CHANGED = change("old", "09", type=EventType.MODIFIED)
CHECKPOINT = Checkpoint(3, "c", 1)


@pytest.mark.parametrize(
    ("entries", "past"),
    [
        pytest.param([OLD, OLD, NEW], 2, id="created in a second before the first line"),
        pytest.param([AT_ONCE, NEW], 0, id="created in the second of the first line"),
        pytest.param([AT_ONCE, CHANGED, OLD, NEW], 3, id="what stands above an object of the past"),
        pytest.param([OLD, CHANGED, NEW], 1, id="changes below the last object of the past"),
        pytest.param([UNTIMED, UNTIMED, NEW, CHANGED], 2, id="lines without a time, in a recording with times"),
        pytest.param([UNTIMED, change("old", "09", "", EventType.MODIFIED)], 0, id="a recording without times"),
        pytest.param([UNTIMED, CHECKPOINT, NEW], 0, id="nothing with a time before a checkpoint"),
        pytest.param([OLD, CHECKPOINT, OLD], 1, id="nothing behind a checkpoint"),
        pytest.param([], 0, id="an empty recording"),
    ],
)
def test_events_of_the_past(entries: list[Entry], past: int) -> None:
    found = [*placed(entries)]
    assert [each.entry for each in found] == entries
    assert [each.is_past for each in found] == [True] * past + [False] * (len(entries) - past)


def test_the_past_ends_after_a_long_silence() -> None:
    late = [OLD, *[NEW] * 1_001, OLD, NEW]
    assert [each.is_past for each in placed(late)].count(True) == 1


def test_an_invalid_line_is_raised_after_everything_above_it() -> None:
    def broken() -> Iterator[Entry]:
        yield UNTIMED
        raise RecordingError("r.jsonl", 2, "damaged")

    entries = placed(broken())
    assert next(entries).entry == UNTIMED
    with pytest.raises(RecordingError, match="damaged"):
        next(entries)


def test_endpoints_without_a_selector_are_unchanged(replay: Replayer, tmp_path: Path) -> None:
    """If a Service lost its selector before the recording began, the Endpoints of the Service look as if the controller
    had just written them.
    """
    lines = [each for each in recorded() if each["object"]["kind"] in ("Namespace", "Service", "Endpoints")]
    lines = [
        each for each in lines if each["object"]["metadata"]["name"] in ("old", "left") and each["type"] == "ADDED"
    ]
    report = replay(write_lines(tmp_path / "r.jsonl", lines))
    assert report.divergences == ()
    found = replay.log.get(Resource("", "endpoints"), Key("old", "left"))
    assert found is not None
    assert found.to_dict()["subsets"]


POD = {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "p", "namespace": "a"}}
TOKEN = {"name": "kube-api-access-x", "projected": {}}
MOUNT = {"name": "kube-api-access-x", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}


def test_a_replayed_pod_gets_the_recorded_account_and_token() -> None:
    ours = {"containers": [{"name": "c"}, {"name": "d", "volumeMounts": [{"name": "v"}]}], "volumes": [{"name": "v"}]}
    containers = [{"name": "c", "volumeMounts": [MOUNT]}, {"name": "d", "volumeMounts": [{"name": "w"}, MOUNT]}]
    given = {"serviceAccountName": "default", "containers": containers, "volumes": [{"name": "w"}, TOKEN]}
    made = with_account(Object.from_dict({**POD, "spec": ours}), Object.from_dict({**POD, "spec": given}))
    assert made.to_dict()["spec"] == {
        "containers": [{"name": "c", "volumeMounts": [MOUNT]}, {"name": "d", "volumeMounts": [{"name": "v"}, MOUNT]}],
        "volumes": [{"name": "v"}, TOKEN],
        "serviceAccountName": "default",
    }


def test_the_account_of_a_template_is_kept() -> None:
    ours, given = ({"containers": [{"name": "c"}], "serviceAccountName": name} for name in ("own", "other"))
    made = with_account(Object.from_dict({**POD, "spec": ours}), Object.from_dict({**POD, "spec": given}))
    assert made.to_dict()["spec"] == ours
