"""Tests of waking, sleeping and failing clusters, with applications that only record their start and stop."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from structlog.testing import capture_logs

from ctrlmgr.errors import NotFound, ServiceUnavailable, SettingsError
from ctrlmgr.eventlog.memory_log import MemoryEventLog
from ctrlmgr.serve.clusters.cluster_directory import ClusterDirectory
from ctrlmgr.serve.clusters.hosted_clusters import HostedClusters
from ctrlmgr.serve.clusters.running_cluster import Parts
from ctrlmgr.server.clusters.mounted_server import MountedServer, SharedLoop
from ctrlmgr.testing import FakeClock
from tests.background import background

TIMEOUT = 10.0
SLEEPS_AFTER = 60.0


class RecordedApplication:
    """Opens its server and runs until it is stopped or `fail` is called."""

    def __init__(self, server: MountedServer) -> None:
        self.server = server
        self.stop = threading.Event()
        self.error: Exception | None = None

    def is_ready(self) -> bool:
        return True

    def run(self, stop: threading.Event) -> None:
        self.stop = stop
        self.server.is_open = True
        self.server.opened.set()
        stop.wait()
        self.server.is_open = False
        if self.error is not None:
            raise self.error

    def fail(self, error: Exception) -> None:
        self.error = error
        self.stop.set()


class Scene:
    """Clusters with recorded applications."""

    def __init__(self, root: Path) -> None:
        self.clock = FakeClock()
        self.made: list[RecordedApplication] = []
        self.logs: list[MemoryEventLog] = []
        self.refusal: Exception | None = None
        directory = ClusterDirectory(root, Random(1))
        self.clusters = HostedClusters(
            directory, lambda name, path: None, self._make, sleep_after=SLEEPS_AFTER, clock=self.clock
        )
        self.stop = threading.Event()

    def _make(self, name: str, path: Path) -> Parts:
        if self.refusal is not None:
            raise self.refusal
        assert path.name == name
        log = MemoryEventLog(clock=self.clock, random=Random(1))
        server = MountedServer(None, f"/clusters/{name}", 1, SharedLoop(), clock=self.clock)  # type: ignore[arg-type]  # no request arrives
        self.logs.append(log)
        self.made.append(RecordedApplication(server))
        return Parts(log, self.made[-1], server)


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    scene = Scene(tmp_path)
    running = background(lambda: scene.clusters.run(scene.stop))
    yield scene
    scene.stop.set()
    running.result(TIMEOUT)


def wait_until_asleep(scene: Scene, name: str) -> None:
    pause = threading.Event()
    for _ in range(1_000):
        if not scene.clusters.is_awake(name):
            return
        pause.wait(0.01)
    raise TimeoutError(name)


def test_a_created_cluster_is_awake_and_runs_once(scene: Scene) -> None:
    scene.clusters.create("a")
    assert scene.clusters.is_awake("a")
    assert scene.clusters.awake("a") is scene.clusters.find("a") is scene.made[0].server
    assert len(scene.made) == 1


def test_an_unknown_cluster_is_not_started(scene: Scene) -> None:
    assert scene.clusters.awake("none") is scene.clusters.find("none") is None
    with pytest.raises(NotFound):
        scene.clusters.delete("none")
    assert scene.made == []


def test_an_unused_cluster_sleeps_until_its_next_request(scene: Scene) -> None:
    scene.clusters.create("used")
    scene.clusters.create("watched")
    scene.clusters.create("unused")
    scene.clock.step(SLEEPS_AFTER)
    scene.made[0].server.last_used = scene.clock.monotonic()
    scene.made[1].server._running = 1
    wait_until_asleep(scene, "unused")
    assert scene.clusters.is_awake("used")
    assert scene.clusters.is_awake("watched")
    assert scene.clusters.names() == ["unused", "used", "watched"]
    again = scene.clusters.awake("unused")
    assert again is scene.made[3].server
    assert scene.clusters.is_awake("unused")


def test_a_cluster_that_failed_starts_again_and_others_run_on(scene: Scene) -> None:
    scene.clusters.create("a")
    scene.clusters.create("b")
    with capture_logs() as logs:
        scene.made[0].fail(RuntimeError("a controller failed"))
        wait_until_asleep(scene, "a")
    assert [(each["event"], each["cluster"]) for each in logs] == [("cluster failed", "a")]
    assert scene.clusters.find("b") is scene.made[1].server
    assert scene.clusters.awake("a") is scene.made[2].server


def test_a_cluster_that_cannot_start_is_unavailable(scene: Scene) -> None:
    scene.refusal = SettingsError("the disk is full")
    with pytest.raises(ServiceUnavailable, match='cluster "a" did not start: the disk is full'):
        scene.clusters.create("a")
    scene.refusal = None
    assert scene.clusters.awake("a") is not None


def test_a_deleted_cluster_is_stopped_and_gone(scene: Scene) -> None:
    scene.clusters.create("a")
    scene.clusters.delete("a")
    assert scene.made[0].stop.is_set()
    assert scene.clusters.names() == []
    assert scene.clusters.awake("a") is None
    scene.clusters.create("a")
    assert scene.clusters.find("a") is scene.made[1].server


def test_all_clusters_stop_with_the_process(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    running = background(lambda: scene.clusters.run(scene.stop))
    for name in "abc":
        scene.clusters.create(name)
    scene.stop.set()
    running.result(TIMEOUT)
    assert all(each.stop.is_set() for each in scene.made)
    assert not any(scene.clusters.is_awake(name) for name in "abc")
