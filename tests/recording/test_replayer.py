"""Tests of recordings that are replayed into our log, with our caches and controllers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import ENDPOINTS, PODS, SERVICES, Key
from ctrlmgr.client import Client
from ctrlmgr.errors import RecordingError, SettingsError
from ctrlmgr.eventlog import EventLog
from ctrlmgr.manager import Controller, Watch
from ctrlmgr.recording.format import Change, RecordingReader
from ctrlmgr.recording.object_comparison import Divergence, Verdict
from ctrlmgr.recording.replay_stage import open_replay_log
from ctrlmgr.recording.replayed_controllers import CONTROLLERS, ControllerBuilder
from ctrlmgr.recording.replayer import Progress, Replay
from ctrlmgr.recording.report import Report
from ctrlmgr.recording.virtual_clock import ReplayClock
from tests.recording.samples import (
    KCM,
    LARGER,
    SMALL,
    Script,
    addresses,
    endpoints,
    managed,
    pod,
    service,
    small_lines,
    write_lines,
)

CLIENT = "kubectl"
LABEL = "endpoints.kubernetes.io/managed-by"
WRITTEN = managed(KCM, ["metadata labels @", f"metadata labels {LABEL}", "subsets"])
LABELS = {LABEL: "endpoint-controller"}


def replay(path: Path, url: str = "memory:", leave_out: str = "") -> tuple[Report, EventLog]:
    clock = ReplayClock()
    log = open_replay_log(url, clock)
    controllers = {name: build for name, build in CONTROLLERS.items() if name != leave_out}
    return Replay(log, clock, controllers=controllers).run(RecordingReader(path)), log


def replayed(path: Path, url: str = "memory:") -> Report:
    report, log = replay(path, url)
    log.close()
    return report


def test_the_replay_reaches_kubernetes_state() -> None:
    report = replayed(SMALL)
    assert report.divergences == ()
    assert (report.events, report.checkpoints, report.objects_compared) == (421, 27, 288)
    assert report.writes > 50


@pytest.fixture(params=["memory", "sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "memory":
        return "memory:"
    return f"sqlite:///{tmp_path / 'log.db'}" if request.param == "sqlite" else request.getfixturevalue("postgres_url")


@pytest.mark.slow
@pytest.mark.timeout(600)  # a hundred thousand events, and the machine may be busy with other tests
@pytest.mark.parametrize("path", LARGER, ids=lambda path: path.name)
def test_the_replay_of_a_large_recording_reaches_kubernetes_state(path: Path) -> None:
    report = replayed(path)
    assert report.divergences == ()
    assert report.checkpoints > 50


def test_every_replay_produces_the_same_log_on_every_machine(database: str) -> None:
    here, there = replayed(SMALL), replayed(SMALL, database)
    assert there.divergences == ()
    assert (there.revision, there.hash) == (here.revision, here.hash)


def test_a_replayed_log_has_no_gaps(tmp_path: Path) -> None:
    _, log = replay(SMALL, f"sqlite:///{tmp_path / 'log.db'}")
    events = list(log.scan())
    assert [event.revision for event in events] == list(range(1, log.head().revision + 1))
    log.close()


def test_inputs_and_controller_writes_are_distinguished_by_their_actor() -> None:
    _, log = replay(SMALL)
    actors = {(event.actor, bool(event.reconcile)) for event in log.scan()}
    ours = ("endpoint-controller", "endpointslice-controller", "namespace-controller")
    assert actors == {("recording", False), *((f"system:serviceaccount:kube-system:{name}", True) for name in ours)}


def test_inputs_keep_their_time_within_50_milliseconds() -> None:
    _, log = replay(SMALL, leave_out="namespace-controller")  # the replayer, which advances time at checkpoints
    recorded = {
        (entry.object.resource, entry.object.key, entry.type, entry.object.uid, entry.object.body): entry.recorded_at
        for entry in RecordingReader(SMALL)
        if isinstance(entry, Change)
    }
    late = [
        event.recorded_at - recorded[event.resource, event.key, event.type, event.object.uid, event.object.body]
        for event in log.scan()
        if event.resource == PODS
    ]
    assert len(late) == 85
    assert 0 <= min(late) <= max(late) <= 50_000


def test_writes_of_the_recorded_controller_are_no_inputs() -> None:
    _, log = replay(SMALL)
    uids = {
        json.loads(line)["object"]["metadata"]["uid"]
        for line in small_lines()
        if b'"kind":"Endpoints"' in line and b'"manager":"kube-controller-manager"' in line
    }
    inputs = {event.object.uid for event in log.scan() if event.resource == ENDPOINTS and not event.reconcile}
    assert uids
    assert not uids & inputs


def test_progress_is_reported_up_to_the_files_size() -> None:
    told: list[Progress] = []
    clock = ReplayClock()
    Replay(open_replay_log("memory:", clock), clock).run(RecordingReader(SMALL), told.append)
    assert told[0].line == 1
    assert {progress.size for progress in told} == {SMALL.stat().st_size}


def test_one_forged_address_is_the_only_divergence(tmp_path: Path) -> None:
    lines = small_lines()
    index = next(
        number
        for number, line in enumerate(lines)
        if b'"kind":"Endpoints"' in line and b'"ip":' in line and b"BOOKMARK" in lines[number + 1]
    )
    doctored = json.loads(lines[index])
    address = doctored["object"]["subsets"][0]["addresses"][0]
    true, address["ip"] = address["ip"], "198.51.100.1"
    lines[index] = json.dumps(doctored, separators=(",", ":")).encode()
    [divergence] = replayed(write_lines(tmp_path / "r.jsonl.gz", lines)).divergences
    assert divergence.verdict is Verdict.DIFFERS
    assert divergence.line == index + 2
    assert divergence.name == doctored["object"]["metadata"]["name"]
    [difference] = divergence.differences
    assert (difference.path, difference.recorded, difference.ours) == (
        ".subsets[0].addresses[0].ip",
        "198.51.100.1",
        true,
    )


def test_a_damaged_recording_leaves_its_readable_part_in_the_log(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "r.jsonl", [*small_lines()[:100], b"{"])
    url = f"sqlite:///{tmp_path / 'log.db'}"
    clock = ReplayClock()
    log = open_replay_log(url, clock)
    run = Replay(log, clock)
    with pytest.raises(RecordingError, match=":101: "):
        run.run(RecordingReader(path))
    report = run.report()
    log.close()
    assert report.events == sum(b"BOOKMARK" not in line for line in small_lines()[:100])
    again = open_replay_log(url, ReplayClock())
    assert again.head().revision == report.revision == report.inputs + report.writes > 0
    again.close()


def test_a_non_empty_log_is_refused() -> None:
    _, log = replay(SMALL)
    with pytest.raises(SettingsError, match="events already"):
        Replay(log, ReplayClock())


def test_without_controllers_every_write_is_an_input() -> None:
    clock = ReplayClock()
    report = Replay(open_replay_log("memory:", clock), clock, controllers={}).run(RecordingReader(SMALL))
    assert (report.inputs, report.writes, report.objects_compared) == (421, 0, 0)


# Short histories that a recording of a busy cluster may contain.


def shop() -> Script:
    """Return a Service with one ready pod, and the Endpoints that Kubernetes wrote for the Service."""
    script = Script().event("ADDED", service(selector={"app": "s"})).event("ADDED", pod("a", "10.0.0.1"))
    return script.event("ADDED", made(("a", "10.0.0.1"))).checkpoint("made")


def made(*pods: tuple[str, str], entries: Iterable[Any] = (WRITTEN,), **metadata: Any) -> dict[str, Any]:
    return endpoints(entries=list(entries), labels=LABELS, subsets=addresses(*pods), **metadata)


def edited(*pods: tuple[str, str], time: str = "2026-01-01T00:00:01Z") -> dict[str, Any]:
    entries = [WRITTEN, managed(CLIENT, ["metadata annotations note"], time=time)]
    return made(*pods, entries=entries, annotations={"note": "x"})


def written_after_a_note() -> dict[str, Any]:
    """Return Endpoints to which a client added an annotation, and a later write of the same Endpoints by the
    controller.
    """
    entries = [managed(CLIENT, ["metadata annotations note"]), managed(KCM, ["subsets"], time="2026-01-01T00:00:01Z")]
    return made(("a", "10.0.0.1"), entries=entries, annotations={"note": "x"})


def overwritten() -> dict[str, Any]:
    """Return Endpoints to which a client added an address."""
    entries = [managed(CLIENT, ["subsets"], time="2026-01-01T00:00:02Z")]
    return made(("a", "203.0.113.7"), entries=entries)


ENDED = [
    pytest.param(shop, id="the controller makes Endpoints"),
    pytest.param(
        lambda: shop().event("MODIFIED", edited(("a", "10.0.0.1"))).checkpoint("edited"), id="a client annotates them"
    ),
    pytest.param(
        lambda: (
            shop()
            .event("MODIFIED", edited(("a", "10.0.0.1")))
            .event("ADDED", pod("b", "10.0.0.2"))
            .event("MODIFIED", edited(("a", "10.0.0.1"), ("b", "10.0.0.2"), time="2026-01-01T00:00:01Z"))
            .checkpoint("kept")
        ),
        id="a client's annotation outlives the controller's next write",
    ),
    pytest.param(
        lambda: shop().event("MODIFIED", overwritten()).checkpoint("stands"), id="a client's edit stands at first"
    ),
    pytest.param(
        lambda: (
            shop()
            .event("MODIFIED", overwritten())
            .event("ADDED", pod("b", "10.0.0.2"))
            .event(
                "MODIFIED",
                made(
                    ("a", "10.0.0.1"),
                    ("b", "10.0.0.2"),
                    entries=[managed(KCM, ["subsets"], time="2026-01-01T00:00:03Z")],
                ),
            )
            .checkpoint("undone")
        ),
        id="a client's edit is undone when a pod comes",
    ),
    pytest.param(
        lambda: (
            shop()
            .event("ADDED", pod("b", "10.0.0.2", ready=True))
            .event("MODIFIED", overwritten())
            .event(
                "MODIFIED",
                made(
                    ("a", "10.0.0.1"),
                    ("b", "10.0.0.2"),
                    entries=[managed(KCM, ["subsets"], time="2026-01-01T00:00:03Z")],
                ),
            )
            .checkpoint("crossed")
        ),
        id="an edit crossed with the controller's reason from before it",
    ),
    pytest.param(
        lambda: (
            shop().event("DELETED", made(("a", "10.0.0.1"))).event("ADDED", made(("a", "10.0.0.1"))).checkpoint("back")
        ),
        id="a client deletes them and they come back",
    ),
    pytest.param(
        lambda: (
            shop()
            .event("DELETED", service(selector={"app": "s"}))
            .event("DELETED", made(("a", "10.0.0.1")))
            .checkpoint("gone")
        ),
        id="the service goes and they go too",
    ),
    pytest.param(
        lambda: (
            shop()
            .event("MODIFIED", edited(("a", "10.0.0.1")))
            .event("DELETED", service(selector={"app": "s"}))
            .event("DELETED", edited(("a", "10.0.0.1")))
            .event("ADDED", service(selector={"app": "s"}))
            .event("ADDED", made(("a", "10.0.0.1")))
            .checkpoint("new")
        ),
        id="the service comes back without what a client noted",
    ),
    pytest.param(
        lambda: (
            shop()
            .event("ADDED", pod("b", "10.0.0.2"))
            .event("MODIFIED", made(("a", "10.0.0.1"), ("b", "10.0.0.2")))
            .event("MODIFIED", service())
            .event("DELETED", pod("b", "10.0.0.2"))
            .checkpoint("left")
        ),
        id="a service that loses its selector leaves the last Endpoints behind",
    ),
    pytest.param(
        lambda: shop().event("ADDED", pod("b", "10.0.0.2")).event("MODIFIED", service()).checkpoint("left"),
        id="a service loses its selector before the controller has heard of a pod",
    ),
    pytest.param(
        lambda: (
            shop()
            .event("MODIFIED", endpoints(entries=[managed(KCM, ["subsets"])], subsets=addresses(("a", "10.0.0.1"))))
            .checkpoint("unlabelled")
        ),
        id="a client removes a label of the controller's, which leaves no trace",
    ),
    pytest.param(
        lambda: (
            Script()
            .event("ADDED", endpoints(entries=[managed(CLIENT, ["subsets"])], subsets=addresses(("x", "203.0.113.7"))))
            .checkpoint("made")
            .event(
                "DELETED", endpoints(entries=[managed(CLIENT, ["subsets"])], subsets=addresses(("x", "203.0.113.7")))
            )
            .checkpoint("gone")
        ),
        id="Endpoints without a service are the client's alone",
    ),
    pytest.param(
        lambda: Script().event("ADDED", edited(("a", "10.0.0.1"))).checkpoint("start"),
        id="Endpoints with a history from before the recording",
    ),
    pytest.param(
        lambda: (
            Script()
            .event("ADDED", service(selector={"app": "s"}))
            .event("ADDED", pod("a", "10.0.0.1"))
            .event("ADDED", written_after_a_note())
            .checkpoint("start")
        ),
        id="a client's annotation from before the recording",
    ),
    pytest.param(
        lambda: (
            shop()
            .event("DELETED", service(selector={"app": "s"}))
            .event("DELETED", made(("a", "10.0.0.1")))
            .event("ADDED", endpoints(entries=[managed(CLIENT, ["subsets"])], subsets=addresses(("x", "203.0.113.7"))))
            .checkpoint("by hand")
            .event(
                "DELETED", endpoints(entries=[managed(CLIENT, ["subsets"])], subsets=addresses(("x", "203.0.113.7")))
            )
            .checkpoint("gone")
        ),
        id="a client makes Endpoints after the service went, and deletes them",
    ),
]


@pytest.mark.parametrize("history", ENDED)
def test_an_accurate_history_has_no_divergence(tmp_path: Path, history: Callable[[], Script]) -> None:
    report = replayed(history().write(tmp_path))
    assert report.divergences == ()
    assert report.checkpoints


@pytest.mark.parametrize(
    ("history", "verdict", "subject"),
    [
        pytest.param(
            lambda: Script().event("ADDED", service(selector={"app": "s"})).checkpoint("c"),
            Verdict.UNEXPECTED,
            "endpoints shop/s",
            id="Kubernetes made none",
        ),
        pytest.param(
            lambda: Script().event("ADDED", service()).event("ADDED", made(("a", "10.0.0.1"))).checkpoint("c"),
            Verdict.MISSING,
            "endpoints shop/s",
            id="we made none",
        ),
        pytest.param(
            lambda: shop().event("ADDED", pod("b", "10.0.0.2")).checkpoint("c"),
            Verdict.DIFFERS,
            "endpoints shop/s",
            id="Kubernetes overlooked a pod",
        ),
    ],
)
def test_a_false_history_diverges(
    tmp_path: Path, history: Callable[[], Script], verdict: Verdict, subject: str
) -> None:
    [divergence] = replayed(history().write(tmp_path)).divergences
    assert (divergence.verdict, divergence.subject, divergence.checkpoint) == (verdict, subject, "c")


def test_a_permanent_difference_is_a_divergence(tmp_path: Path) -> None:
    script = shop().event("ADDED", pod("b", "10.0.0.2")).checkpoint("first").checkpoint("second")
    script.event("MODIFIED", made(("a", "10.0.0.1"), ("b", "10.0.0.2"))).checkpoint("mended")
    [divergence] = replayed(script.write(tmp_path)).divergences
    assert (divergence.checkpoint, divergence.checkpoints) == ("first", 2)


def test_a_watch_without_checkpoints_is_compared_at_its_end(tmp_path: Path) -> None:
    script = Script().event("ADDED", service(selector={"app": "s"}))
    [divergence] = replayed(script.write(tmp_path)).divergences
    assert divergence.checkpoint == "end of the recording"


def test_controllers_that_never_finish_end_the_replay(tmp_path: Path) -> None:
    class EndlessReconciler:
        def reconcile(self, key: Key, client: Client) -> None:
            stamp = str(clock.now())
            client.create(
                Object.from_dict(
                    {"kind": "Endpoints", "apiVersion": "v1", "metadata": {"name": f"e-{stamp}", "namespace": "shop"}}
                )
            )
            clock.advance(0.001)

    def build(informers: Any, client: Any, log: Any, its_clock: Any, random: Any) -> Controller:
        watches = [
            Watch(informers.informer(resource), lambda change: [Key("shop", "s")]) for resource in (SERVICES, ENDPOINTS)
        ]
        return Controller(
            "endpoints-controller",
            EndlessReconciler(),
            watches=watches,
            client=client,
            log=log,
            clock=its_clock,
            random=random,
        )

    clock = ReplayClock()
    controllers: dict[str, ControllerBuilder] = {**CONTROLLERS, "endpoints-controller": build}
    run = Replay(open_replay_log("memory:", clock), clock, controllers=controllers)
    report = run.run(RecordingReader(shop().write(tmp_path)))
    [divergence] = report.divergences
    assert isinstance(divergence, Divergence)
    assert (divergence.verdict, divergence.subject) == (Verdict.RESTLESS, "controller endpoints-controller")
