"""Tests that every recorded write has a counterpart if a replay requests it, so that no change of readiness is lost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ctrlmgr.api.resource import ENDPOINTS, PODS, SERVICES, Key, Resource
from ctrlmgr.recording.object_comparison import Verdict
from ctrlmgr.recording.write_pairing import PairCounts, WriteState, WriteTracker
from ctrlmgr.testing.replays import NothingCompared, Ownership, Replayer
from tests.recording.samples import KCM, LARGER, SMALL, WORKLOADS, Script, addresses, endpoints, managed, pod, service

CONTROLLERS = ["endpoints-controller"]
LABELS = {"endpoints.kubernetes.io/managed-by": "endpoint-controller"}
SUBJECT = (ENDPOINTS, Key("shop", "s"))


@pytest.fixture
def replay(tmp_path: Path) -> Iterator[Replayer]:
    with Replayer(tmp_path) as replayer:
        yield replayer


def endpoints_with(*pods: tuple[str, str], entries: int = 0) -> dict[str, Any]:
    """Return the Endpoints that the recorded controller wrote with these ready pods, at some second."""
    time = f"2026-01-01T00:00:{entries:02}Z"
    return endpoints(entries=[managed(KCM, ["subsets"], time=time)], labels=LABELS, subsets=addresses(*pods))


def flapping() -> Script:
    """A recording of a pod that becomes unready and ready again, with a recorded controller that is one change behind
    each time.
    """
    script = Script().event("ADDED", service(selector={"app": "s"})).event("ADDED", pod("a", "10.0.0.1"))
    script.event("ADDED", pod("b", "10.0.0.2")).event("ADDED", endpoints_with(("a", "10.0.0.1"), ("b", "10.0.0.2")))
    unready = {"notReadyAddresses": addresses(("a", "10.0.0.1"))[0]["addresses"]}
    without = [{**addresses(("b", "10.0.0.2"))[0], **unready}]
    for second in (10, 20):
        script.event("MODIFIED", pod("a", "10.0.0.1", ready=False))
        script.event("MODIFIED", pod("a", "10.0.0.1"))
        gone = {**endpoints_with(entries=second), "subsets": without}
        script.event("MODIFIED", gone)
        script.event("MODIFIED", endpoints_with(("a", "10.0.0.1"), ("b", "10.0.0.2"), entries=second + 1))
    return script.checkpoint("end")


def written(replay: Replayer, resource: Resource) -> list[int]:
    """Return the revisions at which our controllers wrote objects of a kind."""
    return [each.revision for each in replay.log.scan() if each.resource == resource and each.reconcile]


def test_readiness_changes_are_kept_if_every_write_is_replayed(replay: Replayer, tmp_path: Path) -> None:
    path = flapping().write(tmp_path)
    folded = replay(path, CONTROLLERS)
    assert (folded.divergences, folded.paired) == ((), ())
    assert len(written(replay, ENDPOINTS)) < 5
    report = replay(path, CONTROLLERS, every_write=True)
    assert report.divergences == ()
    assert report.paired == (PairCounts("endpoints", recorded=5, paired=5, ours=5),)
    assert len(written(replay, ENDPOINTS)) == 5


def test_each_replayed_write_has_exactly_one_recorded_counterpart(replay: Replayer, tmp_path: Path) -> None:
    replay(flapping().write(tmp_path), CONTROLLERS, every_write=True)
    events = {each.revision: each for each in replay.log.scan()}
    for revision in written(replay, ENDPOINTS)[1:]:
        known = replay.log.reconcile(events[revision].reconcile)
        assert known is not None
        assert [events[each].resource for each in known.cause.triggers if events[each].resource == PODS] == [PODS]


def test_a_write_without_a_counterpart_is_a_divergence(replay: Replayer, tmp_path: Path) -> None:
    script = Script().event("ADDED", service(selector={"app": "s"})).event("ADDED", pod("a", "10.0.0.1"))
    script.event("ADDED", endpoints_with(("a", "10.0.0.1")))
    script.event("MODIFIED", endpoints_with(("unknown-pod", "203.0.113.7"), entries=1))
    path = script.event("MODIFIED", endpoints_with(("a", "10.0.0.1"), entries=2)).checkpoint("end").write(tmp_path)
    assert replay(path, CONTROLLERS).divergences == ()  # at the end, the state equals the recorded one
    report = replay(path, CONTROLLERS, every_write=True)
    (divergence,) = report.divergences
    assert (divergence.verdict, divergence.subject) == (Verdict.UNPAIRED, "endpoints shop/s")
    assert (divergence.checkpoint, divergence.line) == ("revision 4", 4)
    assert {each.recorded for each in divergence.differences} >= {"203.0.113.7"}
    assert report.paired[0].paired == 2


@pytest.mark.parametrize("path", [SMALL, *(LARGER[:1])], ids=lambda path: path.name.partition(".")[0])
def test_every_write_of_a_real_control_plane_has_its_counterpart(replay: Replayer, path: Path) -> None:
    report = replay(path, every_write=True)
    assert report.divergences == ()
    assert [each.resource for each in report.paired] == ["endpoints", "endpointslices.discovery.k8s.io"]
    for each in report.paired:
        assert each.paired == each.recorded > 70
        assert each.ours <= each.recorded * 1.15
    if path == SMALL:
        assert replay(path, every_write=True).hash == report.hash


def test_nearly_every_write_of_workloads_has_its_counterpart(replay: Replayer) -> None:
    report = replay(WORKLOADS, every_write=True)
    recorded, paired = (sum(getattr(each, side) for each in report.paired) for side in ("recorded", "paired"))
    assert paired >= 0.97 * recorded > 500
    assert len(report.divergences) == recorded - paired


def tracked(recorded: str, ours: str) -> str:
    """Return the pairs of recorded states and our writes; our writes have the revisions 10, 20 and so on."""
    tracker = WriteTracker()
    tracker.follow(ENDPOINTS, lambda event: ())
    for number, state in enumerate(recorded, 1):
        tracker.recorded(SUBJECT, WriteState(number * 10 + 5, number, state))
    tracker._ours[SUBJECT] = [WriteState(number * 10, 0, state) for number, state in enumerate(ours, 1)]
    return " ".join(str(revision) for revision, subjects in sorted(tracker.moments().items()) if SUBJECT in subjects)


@pytest.mark.parametrize(
    ("recorded", "ours", "moments"),
    [
        ("ab", "ab", "10 20"),
        ("aba", "aba", "10 20 30"),  # a change to unready and back is three writes
        ("ac", "abc", "10"),  # our write of c at 30 is later than the recorded one at 25
        ("xac", "abc", "10 30"),
        ("aab", "ab", "10 20"),  # the second write changed no compared field
        ("bab", "ab", "10 20"),  # the first b was recorded before our controller wrote it
    ],
)
def test_pairs_keep_the_order_of_both_sides(recorded: str, ours: str, moments: str) -> None:
    assert tracked(recorded, ours) == moments


def owning(manager: str = "ports-operator", controller: str = "endpoints-controller") -> Ownership:
    return Ownership(controller, Resource("", "configmaps"), manager, parent=SERVICES, causes=(SERVICES,))


def test_a_comparison_without_possible_divergences_fails(replay: Replayer, tmp_path: Path) -> None:
    path = Script().event("ADDED", service()).checkpoint("end").write(tmp_path)
    with pytest.raises(NothingCompared, match=r"no object in .* was compared"):
        replay(path, CONTROLLERS)
    assert replay(path, CONTROLLERS, must_compare=False).divergences == ()
    assert replay(path, controllers={}).divergences == ()  # the module only loads it


def test_an_ownership_that_matches_nothing_fails(replay: Replayer) -> None:
    with pytest.raises(NothingCompared, match=r"configmaps, but the field manager ports-operator wrote none"):
        replay(SMALL, CONTROLLERS, owns=[owning()])
    with pytest.raises(NothingCompared, match=r"ports owns configmaps, but does not run"):
        replay(SMALL, CONTROLLERS, owns=[owning(controller="ports")])
