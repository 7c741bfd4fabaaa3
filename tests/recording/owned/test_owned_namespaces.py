"""Tests of namespaces in a replay: their deletions, their conditions, and the deletion of their content."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ctrlmgr.recording.format import RecordingReader
from ctrlmgr.recording.object_comparison import Verdict
from ctrlmgr.recording.replay_stage import open_replay_log
from ctrlmgr.recording.replayer import Replay
from ctrlmgr.recording.report import Report
from ctrlmgr.recording.virtual_clock import ReplayClock
from tests.recording.samples import KCM, Script, endpoints, managed, pod, service

ENDED = "2026-01-01T00:00:00Z"
DELETED = "All content successfully deleted, may be waiting on finalization"
KEPT = ["kubernetes"]
LABELS = {"endpoints.kubernetes.io/managed-by": "endpoint-controller"}


def replayed(script: Script, tmp_path: Path) -> Report:
    clock = ReplayClock()
    log = open_replay_log("memory:", clock)
    report = Replay(log, clock).run(RecordingReader(script.checkpoint("end").write(tmp_path)))
    log.close()
    return report


def namespace(*, ending: bool = False, conditions: Any = None, spec: Any = KEPT, **metadata: Any) -> dict[str, Any]:
    labels = {"kubernetes.io/metadata.name": "shop", **metadata.pop("labels", {})}
    ended = {"deletionTimestamp": ENDED} if ending else {}
    metadata = {"name": "shop", "uid": "shop", "labels": labels, **ended, **metadata}
    status = {"phase": "Terminating" if ending else "Active", **({"conditions": conditions} if conditions else {})}
    finalizers = {"finalizers": spec} if spec else {}
    return {"kind": "Namespace", "apiVersion": "v1", "metadata": metadata, "spec": finalizers, "status": status}


def conditions(left: str = "", held: str = "") -> list[dict[str, str]]:
    """Return the conditions that the namespace controller writes: no remaining content, or the remaining content and
    the finalizers that hold it.
    """
    remaining, finalizers = "All content successfully removed", "All content-preserving finalizers finished"
    said = [
        ("DeletionDiscoveryFailure", "", "ResourcesDiscovered", "All resources successfully discovered"),
        ("DeletionGroupVersionParsingFailure", "", "ParsedGroupVersions", "All legacy kube types successfully parsed"),
        ("DeletionContentFailure", "", "ContentDeleted", DELETED),
        ("ContentRemaining", left, "SomeResourcesRemain" if left else "ContentRemoved", left or remaining),
        ("FinalizersRemaining", held, "SomeFinalizersRemain" if held else "ContentHasNoFinalizers", held or finalizers),
    ]
    return [
        {"type": f"Namespace{type_}", "status": str(bool(is_bad)), "reason": reason, "message": text}
        | {"lastTransitionTime": ENDED}
        for type_, is_bad, reason, text in said
    ]


CONFIG_MAP_LEFT = conditions(
    "Some resources are remaining: configmaps. has 1 resource instances",
    "Some content in the namespace has finalizers remaining: example.com/hold in 1 resource instances",
)


def shop() -> Script:
    """Return the script of a namespace with a Service and its Endpoints; the deletion of the namespace was requested
    long enough ago.
    """
    script = Script().event("ADDED", namespace()).event("ADDED", service(selector={"app": "s"}))
    script.event("ADDED", endpoints(entries=[managed(KCM, ["subsets"])], labels=LABELS)).checkpoint("made")
    script.event("MODIFIED", namespace(ending=True))
    script.revision += 6
    return script


def emptied() -> Script:
    return shop().event("DELETED", service()).event("DELETED", endpoints(labels=LABELS))


def deleted_namespace(script: Script) -> Script:
    script.event("MODIFIED", namespace(ending=True, conditions=conditions()))
    return script.event("DELETED", namespace(ending=True, conditions=conditions()))


def with_a_pod() -> Script:
    """Return the script of a namespace with a pod that has a grace period; a client ends the pod's deletion."""
    script = Script().event("ADDED", namespace()).event("ADDED", pod("a", "10.0.0.1"))
    script.event("MODIFIED", namespace(ending=True))
    leaving = pod("a", "10.0.0.1")
    leaving["metadata"] |= {"deletionTimestamp": ENDED, "deletionGracePeriodSeconds": 30}
    script.event("MODIFIED", leaving)  # at once, so a client deleted it
    script.event("DELETED", leaving)
    script.revision += 6
    return deleted_namespace(script)


def held_by_what_is_not_recorded() -> Script:
    script = emptied().event("MODIFIED", namespace(ending=True, conditions=CONFIG_MAP_LEFT)).checkpoint("held")
    return deleted_namespace(script)


def held_by_a_client() -> Script:
    """Return a script in which a client removes the last finalizer, which is in the namespace's own metadata."""
    script = Script().event("ADDED", namespace(finalizers=["example.com/ns"]))
    script.event("MODIFIED", namespace(ending=True, finalizers=["example.com/ns"]))
    script.revision += 6
    script.event("MODIFIED", namespace(ending=True, conditions=conditions(), finalizers=["example.com/ns"]))
    script.event("MODIFIED", namespace(ending=True, conditions=conditions(), finalizers=["example.com/ns"], spec=None))
    return script.checkpoint("held").event("DELETED", namespace(ending=True, conditions=conditions(), spec=None))


def made_anew() -> Script:
    return deleted_namespace(emptied()).event("ADDED", namespace(labels={"again": "1"}))


def held_by_a_client_and_made_anew() -> Script:
    """Return a script in which the namespace and its Service exist again, and no checkpoint in between makes our
    controller reconcile.
    """
    script = Script().event("ADDED", namespace(finalizers=["example.com/ns"])).event("ADDED", service())
    script.event("MODIFIED", namespace(ending=True, finalizers=["example.com/ns"]))
    script.revision += 6
    script.event("DELETED", service())
    script.event("MODIFIED", namespace(ending=True, conditions=conditions(), finalizers=["example.com/ns"], spec=None))
    script.event("DELETED", namespace(ending=True, conditions=conditions(), spec=None))
    return script.event("ADDED", namespace(labels={"again": "1"})).event("ADDED", service())


@pytest.mark.parametrize(
    "history",
    [
        pytest.param(lambda: Script().event("ADDED", namespace()), id="it stays"),
        pytest.param(lambda: deleted_namespace(emptied()), id="it goes with what is in it"),
        pytest.param(with_a_pod, id="a pod goes by itself"),
        pytest.param(held_by_what_is_not_recorded, id="something holds it that is not recorded"),
        pytest.param(held_by_a_client, id="a client holds it"),
        pytest.param(made_anew, id="it is made anew"),
        pytest.param(held_by_a_client_and_made_anew, id="a client holds it, lets it go, and makes it anew"),
        pytest.param(
            lambda: shop().event("MODIFIED", namespace(ending=True, labels={"a": "b"})).event("DELETED", service())
            .event("DELETED", endpoints(labels=LABELS))
            .event("MODIFIED", namespace(ending=True, labels={"a": "b"}, conditions=conditions()))
            .event("DELETED", namespace(ending=True, labels={"a": "b"}, conditions=conditions())),
            id="a client labels it when it is terminating",
        ),
    ],
)  # fmt: skip
def test_an_accurate_history_has_no_divergence(tmp_path: Path, history: Callable[[], Script]) -> None:
    assert replayed(history(), tmp_path).divergences == ()


def test_the_address_of_a_service_is_deleted_with_it(tmp_path: Path) -> None:
    claim = {
        "kind": "IPAddress",
        "apiVersion": "networking.k8s.io/v1",
        "metadata": {"name": "10.96.0.1", "uid": "claim"},
        "spec": {"parentRef": {"group": "", "resource": "services", "namespace": "shop", "name": "s"}},
    }
    script = Script().event("ADDED", namespace()).event("ADDED", service()).event("ADDED", claim).checkpoint("made")
    script.event("MODIFIED", namespace(ending=True))
    script.revision += 6
    report = replayed(deleted_namespace(script.event("DELETED", service()).event("DELETED", claim)), tmp_path)
    assert (report.divergences, report.inputs) == ((), 4)


def service_left() -> Script:
    """Return a script in which Kubernetes did not delete the Service of a terminating namespace."""
    script = shop().event("DELETED", endpoints(labels=LABELS))
    return script.event("MODIFIED", namespace(ending=True, conditions=conditions()))


@pytest.mark.parametrize(
    "history",
    [
        pytest.param(emptied, id="Kubernetes did not let it go"),
        pytest.param(service_left, id="nor the service in it"),
        pytest.param(
            lambda: deleted_namespace(shop().event("DELETED", endpoints(labels=LABELS))), id="it left a service"
        ),
        pytest.param(
            lambda: (
                shop()
                .event("DELETED", service())
                .event("DELETED", endpoints(labels=LABELS))
                .event("MODIFIED", namespace(ending=True, conditions=CONFIG_MAP_LEFT[:3]))
            ),
            id="its conditions are incomplete",
        ),
    ],
)
def test_a_false_history_diverges(tmp_path: Path, history: Callable[[], Script]) -> None:
    found = [each for each in replayed(history(), tmp_path).divergences if each.resource == "namespaces"]
    assert [(each.verdict, each.name) for each in found] == [(Verdict.MISSING, "shop")]


def test_conditions_are_compared_exactly(tmp_path: Path) -> None:
    wrong = [dict(each) for each in CONFIG_MAP_LEFT]
    wrong[2]["reason"] = "Wrong"
    [divergence] = replayed(emptied().event("MODIFIED", namespace(ending=True, conditions=wrong)), tmp_path).divergences
    assert [each.path for each in divergence.differences] == [".status.conditions[2].reason"]
