"""Tests of kubelets that hang or crash, and of clients that disconnect: each request ends, and uses no resources
afterwards.
"""

from __future__ import annotations

import http.client
import os
from collections.abc import Iterator
from contextlib import ExitStack, suppress

import pytest

from ctrlmgr.http.proxying import upstream_connection
from tests.server.kubelets.raw_kubelet import SUCCESS, WRONG
from tests.server.kubelets.scene import PODS, Scene, a_scene, read

PARALLEL = int(os.environ.get("CTRLMGR_TEST_EXECS", "20"))
"""The number of concurrent commands; a long test run uses 200."""

UNNOTICED = {"two-lengths"}
"""If a response has several content-lengths, the first one counts, which is the content-length of the log."""


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with a_scene(tmp_path_factory.mktemp("kubelets")) as scene:
        yield scene


@pytest.mark.parametrize("how", WRONG)
def test_a_misbehaving_kubelet_ends_only_its_request(scene: Scene, how: str) -> None:
    before = scene.settled()
    for _ in range(3):
        found = read(scene.exec(how))
        assert b'"Success"' not in found
        assert found.startswith((b"HTTP/1.1 5", b"HTTP/1.1 101")), found[:200]
        with suppress(OSError, http.client.HTTPException):  # an incomplete answer
            answer = scene.log(how)
            assert answer.status >= 500 or how in UNNOTICED, answer
    scene.expect_nothing_left(before)


def test_a_finished_command_leaves_nothing(scene: Scene) -> None:
    before = scene.settled()
    for _ in range(3):
        assert SUCCESS in read(scene.exec("good"))
    scene.expect_nothing_left(before)


def test_hanging_kubelets_delay_no_other_request(scene: Scene) -> None:
    before = scene.settled()
    with ExitStack() as stack:
        for _ in range(PARALLEL):
            stack.enter_context(scene.exec("hangs"))
        scene.kubelet.wait_for_open(PARALLEL + 1)
        assert scene.site.ask("/api/v1/nodes").status == 200
        assert scene.log().body == "hello\n"
        assert SUCCESS in read(scene.exec("good"))
    scene.kubelet.wait_for_open(1)
    scene.expect_nothing_left(before)


def test_many_commands_run_concurrently_and_leave_nothing(scene: Scene) -> None:
    before = scene.settled()
    connections = [scene.exec("waits") for _ in range(PARALLEL)]
    for each in connections:
        assert each.recv(12) == b"HTTP/1.1 101"
    scene.kubelet.wait_for_open(PARALLEL + 1)
    assert scene.census().files >= before.files + 2 * PARALLEL
    for each in connections:
        each.close()
    scene.kubelet.wait_for_open(1)
    scene.expect_nothing_left(before)


def test_a_client_that_does_not_read_and_disconnects_leaves_nothing(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kubelet never stops writing, so the server closes the connection after `_FINISH`."""
    monkeypatch.setattr(upstream_connection, "_FINISH", 0.2)
    before = scene.settled()
    connections = [scene.exec("endless") for _ in range(5)]
    for each in connections:
        assert len(each.recv(1 << 20)) > 0
    assert scene.site.ask("/api/v1/nodes").status == 200
    for each in connections:
        each.close()
    scene.kubelet.wait_for_open(1)
    scene.expect_nothing_left(before)


def test_an_invalid_certificate_is_refused(scene: Scene) -> None:
    for pod, told in (
        ("other", "certificate signed by unknown authority"),
        ("elsewhere", "certificate is not valid for"),
    ):
        answer = scene.log(pod=pod)
        assert (answer.status, told in answer.json["message"]) == (500, True), answer
        assert read(scene.exec("good", pod)).startswith(b"HTTP/1.1 500")
        trusting = scene.site.ask(f"{PODS}/{pod}/log?container=good&insecureSkipTLSVerifyBackend=true")
        assert trusting.body == "hello\n"


def test_a_silent_kubelet_times_out(scene: Scene) -> None:
    before = scene.settled()
    connections = [scene.exec("good", "silent") for _ in range(3)]
    assert scene.log().body == "hello\n"
    for each in connections:
        found = read(each)
        assert found.startswith(b"HTTP/1.1 500")
        assert b"i/o timeout" in found or b"TLS handshake timeout" in found
    scene.expect_nothing_left(before)
