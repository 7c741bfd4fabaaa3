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
from tests.server.kubelets.kubelet_site import PODS, KubeletSite, a_scene, read
from tests.server.kubelets.raw_kubelet import SUCCESS, WRONG

PARALLEL = int(os.environ.get("CTRLMGR_TEST_EXECS", "20"))
"""The number of concurrent commands; a long test run uses 200."""

UNNOTICED = {"two-lengths"}
"""If a response has several content-lengths, the first one counts, which is the content-length of the log."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KubeletSite]:
    with a_scene(tmp_path_factory.mktemp("kubelets")) as cluster:
        yield cluster


@pytest.mark.parametrize("how", WRONG)
def test_a_misbehaving_kubelet_ends_only_its_request(cluster: KubeletSite, how: str) -> None:
    before = cluster.settled()
    for _ in range(3):
        found = read(cluster.exec(how))
        assert b'"Success"' not in found
        assert found.startswith((b"HTTP/1.1 5", b"HTTP/1.1 101")), found[:200]
        with suppress(OSError, http.client.HTTPException):  # an incomplete answer
            answer = cluster.log(how)
            assert answer.status >= 500 or how in UNNOTICED, answer
    cluster.expect_nothing_left(before)


def test_a_finished_command_leaves_nothing(cluster: KubeletSite) -> None:
    before = cluster.settled()
    for _ in range(3):
        assert SUCCESS in read(cluster.exec("good"))
    cluster.expect_nothing_left(before)


def test_hanging_kubelets_delay_no_other_request(cluster: KubeletSite) -> None:
    before = cluster.settled()
    with ExitStack() as stack:
        for _ in range(PARALLEL):
            stack.enter_context(cluster.exec("hangs"))
        cluster.kubelet.wait_for_open(PARALLEL + 1)
        assert cluster.site.ask("/api/v1/nodes").status == 200
        assert cluster.log().body == "hello\n"
        assert SUCCESS in read(cluster.exec("good"))
    cluster.kubelet.wait_for_open(1)
    cluster.expect_nothing_left(before)


def test_many_commands_run_concurrently_and_leave_nothing(cluster: KubeletSite) -> None:
    before = cluster.settled()
    connections = [cluster.exec("waits") for _ in range(PARALLEL)]
    for each in connections:
        assert each.recv(12) == b"HTTP/1.1 101"
    cluster.kubelet.wait_for_open(PARALLEL + 1)
    assert cluster.census().files >= before.files + 2 * PARALLEL
    for each in connections:
        each.close()
    cluster.kubelet.wait_for_open(1)
    cluster.expect_nothing_left(before)


def test_a_client_that_does_not_read_and_disconnects_leaves_nothing(
    cluster: KubeletSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kubelet never stops writing, so the server closes the connection after `_FINISH`."""
    monkeypatch.setattr(upstream_connection, "_FINISH", 0.2)
    before = cluster.settled()
    connections = [cluster.exec("endless") for _ in range(5)]
    for each in connections:
        assert len(each.recv(1 << 20)) > 0
    assert cluster.site.ask("/api/v1/nodes").status == 200
    for each in connections:
        each.close()
    cluster.kubelet.wait_for_open(1)
    cluster.expect_nothing_left(before)


def test_an_invalid_certificate_is_refused(cluster: KubeletSite) -> None:
    for pod, told in (
        ("other", "certificate signed by unknown authority"),
        ("elsewhere", "certificate is not valid for"),
    ):
        answer = cluster.log(pod=pod)
        assert (answer.status, told in answer.json["message"]) == (500, True), answer
        assert read(cluster.exec("good", pod)).startswith(b"HTTP/1.1 500")
        trusting = cluster.site.ask(f"{PODS}/{pod}/log?container=good&insecureSkipTLSVerifyBackend=true")
        assert trusting.body == "hello\n"


def test_a_silent_kubelet_times_out(cluster: KubeletSite) -> None:
    before = cluster.settled()
    connections = [cluster.exec("good", "silent") for _ in range(3)]
    assert cluster.log().body == "hello\n"
    for each in connections:
        found = read(each)
        assert found.startswith(b"HTTP/1.1 500")
        assert b"i/o timeout" in found or b"TLS handshake timeout" in found
    cluster.expect_nothing_left(before)
