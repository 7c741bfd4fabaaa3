"""Tests of EndpointSlices in a replay: their content is compared, regardless of their manager and of the distribution
of endpoints among slices.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ctrlmgr.recording.format import RecordingReader
from ctrlmgr.recording.object_comparison import Divergence, Verdict
from ctrlmgr.recording.replay_stage import open_replay_log
from ctrlmgr.recording.replayer import Replay
from ctrlmgr.recording.report import Report
from ctrlmgr.recording.virtual_clock import ReplayClock
from tests.recording.samples import KCM, Script, addresses, endpoints, managed, pod, service, small_lines, write_lines

KEEPER = "endpointslice-controller.k8s.io"
MIRROR = "endpointslicemirroring-controller.k8s.io"
SELECTOR = {"app": "s"}
A, B = ("a", "10.0.0.1"), ("b", "10.0.0.2")


def replayed(path: Path) -> Report:
    clock = ReplayClock()
    log = open_replay_log("memory:", clock)
    report = Replay(log, clock).run(RecordingReader(path))
    log.close()
    return report


def a_slice(name: str, *there: tuple[str, str], manager: str = KEEPER, zone: str = "zone-1") -> dict[str, Any]:
    """Return an EndpointSlice as the recorded controller wrote it for the Service `s`, with ready
    pods as (name, ip).
    """
    labels = {"kubernetes.io/service-name": "s", "endpointslice.kubernetes.io/managed-by": manager}
    metadata = {"name": name, "namespace": "shop", "uid": name, "labels": labels, "managedFields": [managed(KCM, [])]}
    return {
        "kind": "EndpointSlice",
        "apiVersion": "discovery.k8s.io/v1",
        "metadata": metadata,
        "addressType": "IPv4",
        "endpoints": [_endpoint(*each, zone=zone) for each in there] or None,
        "ports": [{"name": "", "port": 80, "protocol": "TCP"}] if there else None,
    }


def _endpoint(name: str, ip: str, *, zone: str) -> dict[str, Any]:
    target = {"kind": "Pod", "namespace": "shop", "name": name, "uid": f"pod-{name}"}
    conditions = {"ready": True, "serving": True, "terminating": False}
    placed = {"nodeName": "node-a", **({"zone": zone} if zone else {})}
    return {"addresses": [ip], "conditions": conditions, "targetRef": target, **placed}


def made(*there: tuple[str, str]) -> dict[str, Any]:
    """Return the Endpoints that correspond to the EndpointSlices."""
    labels = {"endpoints.kubernetes.io/managed-by": "endpoint-controller"}
    return endpoints(entries=[managed(KCM, ["subsets"])], labels=labels, subsets=addresses(*there))


def shop() -> Script:
    """Return a Service with two ready pods, and the Endpoints of the Service."""
    script = Script().event("ADDED", service(selector=SELECTOR))
    for each in (A, B):
        script.event("ADDED", pod(*each))
    return script.event("ADDED", made(A, B))


def lost_its_selector() -> Script:
    """EndpointSlices from the time when the Service had a selector stay, and the Endpoints are mirrored in addition."""
    script = shop().event("ADDED", a_slice("s-1", A, B)).checkpoint("made")
    script.event("MODIFIED", service()).event("DELETED", pod(*B))
    mirror = a_slice("s-2", A, B, manager=MIRROR)
    for each in mirror["endpoints"]:
        each["conditions"] = {"ready": True}
        del each["zone"]
    return script.event("ADDED", mirror)


@pytest.mark.parametrize(
    "history",
    [
        pytest.param(lambda: shop().event("ADDED", a_slice("s-1", A, B)), id="one slice"),
        pytest.param(
            lambda: shop().event("ADDED", a_slice("s-1", B)).event("ADDED", a_slice("s-2", A)), id="the same in two"
        ),
        pytest.param(lambda: shop().event("ADDED", a_slice("s-1", A, B, zone="")), id="a node in no zone"),
        pytest.param(lambda: shop(), id="a recording without slices"),
        pytest.param(lost_its_selector, id="a service that lost its selector"),
        pytest.param(
            lambda: shop().event("ADDED", a_slice("s-1", A, B)).event("ADDED", a_slice("mine", A, manager="me")),
            id="a client's own slice",
        ),
        pytest.param(
            lambda: (
                shop()
                .event("ADDED", a_slice("s-1", A, B))
                .event("DELETED", a_slice("s-1", A, B))
                .event("ADDED", a_slice("s-3", A, B))
            ),
            id="a client deletes a slice and it comes back",
        ),
    ],
)
def test_an_accurate_history_has_no_divergence(tmp_path: Path, history: Callable[[], Script]) -> None:
    report = replayed(history().checkpoint("end").write(tmp_path))
    assert report.divergences == ()


def only(report: Report) -> Divergence:
    [divergence] = report.divergences
    return divergence


@pytest.mark.parametrize(
    ("history", "verdict", "path"),
    [
        pytest.param(
            lambda: shop().event("ADDED", a_slice("s-1", A)), Verdict.DIFFERS, "[1]", id="Kubernetes overlooked a pod"
        ),
        pytest.param(
            lambda: shop().event("ADDED", a_slice("mine", A, manager="me")), Verdict.UNEXPECTED, "", id="made none"
        ),
        pytest.param(
            lambda: (
                Script().event("ADDED", service(selector=SELECTOR)).event("ADDED", made()).event("ADDED", a_slice("x"))
                .event("ADDED", a_slice("s-2", A, manager=MIRROR))
            ),
            Verdict.DIFFERS,
            MIRROR,
            id="it mirrored what has a selector",
        ),
        pytest.param(
            lambda: (
                shop()
                .event("ADDED", a_slice("s-1", A, B))
                .event("ADDED", {"kind": "Node", "apiVersion": "v1", "metadata": {"name": "node-a"}})
            ),
            Verdict.DIFFERS,
            "zone",
            id="nodes are recorded and have no zone",
        ),
    ],
)  # fmt: skip
def test_a_false_history_diverges(tmp_path: Path, history: Callable[[], Script], verdict: Verdict, path: str) -> None:
    found = [
        each for each in replayed(history().checkpoint("end").write(tmp_path)).divergences if "slices" in each.subject
    ]
    assert [each.verdict for each in found] == [verdict]
    assert found[0].subject == "endpointslices.discovery.k8s.io shop/s"
    assert all(path in difference.path for difference in found[0].differences)


def test_one_forged_endpoint_is_the_only_divergence(tmp_path: Path) -> None:
    lines = small_lines()
    index = max(
        number
        for number, line in enumerate(lines)
        if b'"kind":"EndpointSlice"' in line
        and b'"ready":' in line
        and KEEPER.encode() in line
        and b"BOOKMARK" in b"".join(lines[number + 1 : number + 3])
    )
    doctored = json.loads(lines[index])
    doctored["object"]["endpoints"][0]["conditions"]["ready"] = None
    lines[index] = json.dumps(doctored, separators=(",", ":")).encode()
    divergence = only(replayed(write_lines(tmp_path / "r.jsonl.gz", lines)))
    assert divergence.verdict is Verdict.DIFFERS
    assert {difference.path.rsplit(".", 1)[-1] for difference in divergence.differences} <= {"ready", "conditions"}
