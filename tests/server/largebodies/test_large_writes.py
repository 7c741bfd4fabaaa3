"""Tests of large bodies, from the socket to the log: worker processes execute the requests, and
release all resources.
"""

from __future__ import annotations

import gc
import inspect
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ctrlmgr.largebodies import jobs
from ctrlmgr.largebodies.jobs import LARGE
from ctrlmgr.largebodies.messages import Job
from ctrlmgr.schema import strict_json, yaml_document
from ctrlmgr.server.largebodies.worker_process import Process
from tests.server.site import CONFIG_MAPS, make, running

PATIENCE = 30


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[int, Job]]]:
    """The jobs that worker processes received during a test, each with the PID of the process."""
    found: list[tuple[int, Job]] = []
    send = Process.send

    async def noted(self: Process, value: Any) -> None:
        if isinstance(value, Job):
            found.append((self.pid, value))
        await send(self, value)

    monkeypatch.setattr(Process, "send", noted)
    yield found
    assert not any(is_alive(pid) for pid, _ in found), "a process was left"


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_other_requests_are_answered_while_a_large_body_is_processed() -> None:
    large = {"metadata": {"name": "large"}, "data": {f"k{number}": "x" * 90 for number in range(8000)}}
    with running(make()) as site:
        answer = site.ask(CONFIG_MAPS, "POST", large)
        assert answer.status == 201, answer.body
        assert len(answer.json["data"]) == 8000
        assert site.change("large", k1="y")["data"]["k1"] == "y"
        answer = site.ask(f"{CONFIG_MAPS}/large", "PUT", {**large, "data": {**large["data"], "-": "!" * 70_000}})
        assert answer.status == 200, answer.body
        bad = {"metadata": {"name": "bad"}, "data": {f"{number}!": "x" * 90 for number in range(2000)}}
        refused = site.ask(CONFIG_MAPS, "POST", bad)
        assert refused.status == 422
        assert "more" in refused.json["message"]
        assert site.ask(CONFIG_MAPS, "POST", b'{"a":' * 30_000).status == 400


LARGE_BODY = b'{"x":"' + b"y" * LARGE + b'"}'
ACCESS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
POD, SCALE = "/api/v1/namespaces/default/pods/p", "/apis/apps/v1/namespaces/default/deployments/d/scale"


REQUESTS = [
    ("POST", CONFIG_MAPS, "application/json"),
    ("PUT", f"{CONFIG_MAPS}/c", "application/json"),
    ("PATCH", f"{CONFIG_MAPS}/c", "application/merge-patch+json"),
    ("PATCH", f"{CONFIG_MAPS}/c?fieldManager=m", "application/apply-patch+yaml"),
    ("DELETE", f"{CONFIG_MAPS}/c", "application/json"),
    ("DELETE", CONFIG_MAPS, "application/json"),
    ("POST", ACCESS, "application/json"),
    ("POST", ACCESS, "application/yaml"),
    ("POST", f"{POD}/binding", "application/json"),
    ("POST", f"{POD}/eviction", "application/json"),
    ("PUT", SCALE, "application/json"),
]
DENSE_BODY = b'{"x":[' + b"{}," * jobs.MANY + b"{}]}"
SHORT_YAML = b"x: &a [1]\ny: [*a, *a]\n"


def test_no_large_body_is_processed_on_the_event_loop(
    monkeypatch: pytest.MonkeyPatch, sent: list[tuple[int, Job]]
) -> None:
    read: list[int] = []

    def noting(decode: Callable[[bytes], Any]) -> Callable[[bytes], Any]:
        def noted(data: bytes) -> Any:
            read.append(len(data))
            return decode(data)

        return noted

    monkeypatch.setattr(strict_json, "decode_shallow", noting(strict_json.decode_shallow))
    monkeypatch.setattr(yaml_document, "_plain_json", noting(yaml_document._plain_json))
    with running(make()) as site:
        site.create("c", a="b")
        small = len(read)
        for method, path, media_type in REQUESTS:
            for body in (LARGE_BODY, DENSE_BODY):
                before = len(sent)
                code = site.ask(path, method, body, {"content-type": media_type}).status
                assert code not in (415, 500, 504)
                assert len(sent) == before + 1, (method, path)
        before = len(sent)
        site.ask(CONFIG_MAPS, "POST", SHORT_YAML, {"content-type": "application/yaml"})
        assert len(sent) == before + 1
    assert small
    assert len(read) == small, "read by the server itself"


@pytest.mark.parametrize("op", ["copy", "\\u0063opy"])
def test_a_short_patch_that_copies_much_is_not_applied_on_the_event_loop(
    op: str, monkeypatch: pytest.MonkeyPatch, sent: list[tuple[int, Job]]
) -> None:
    monkeypatch.setattr("ctrlmgr.engine.writes.patching.json_patch", None)
    steps = ",".join(f'{{"op":"{op}","from":"/data","path":"/data/a{number}"}}' for number in range(30))
    with running(make()) as site:
        site.create("c", a="b" * 1000)
        answer = site.ask(
            f"{CONFIG_MAPS}/c", "PATCH", f"[{steps}]".encode(), {"content-type": "application/json-patch+json"}
        )
        assert answer.status == 422
    assert sent


def test_small_bodies_need_no_process_unless_their_object_is_large(sent: list[tuple[int, Job]]) -> None:
    with running(make()) as site:
        site.create("small", a="b" * 1000)
        site.change("small", b="c")
        assert not sent
        site.create("large", a="b" * 2 * LARGE)
        assert len(sent) == 1
        assert site.change("large", b="c")["data"]["b"] == "c"
        assert len(sent) == 2


PARENT = """
import os
from tests.robustness.attack.judges.second_client import children
from tests.server.site import make, running
with running(make()) as site:
    site.create("large", a="b" * 200_000)
    print("children:", *children(os.getpid()), flush=True)
    os.kill(os.getpid(), 9)
"""


def test_worker_processes_end_with_their_server_in_every_case() -> None:
    ended = subprocess.run([sys.executable, "-c", PARENT], capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    *_, printed = ended.stdout.partition("children:")  # a log line of a slow request may precede it
    children = [int(each) for each in printed.split()]
    assert children
    for _ in range(PATIENCE * 100):
        if not any(is_alive(each) for each in children):
            return
        threading.Event().wait(0.01)
    pytest.fail("a process was left")


@pytest.mark.parametrize("size", [10, 100_000])
def test_a_refusal_leaves_no_reference_cycles(size: int) -> None:
    """Stack frames that refer to their own error would keep the body in memory until the next garbage collection."""
    bad = {"metadata": {"name": "bad"}, "data": {"!": "x" * size}}
    with running(make()) as site:
        site.ask(CONFIG_MAPS, "POST", bad)
        gc.collect()
        gc.disable()
        # Existing objects are not examined, because objects of earlier tests may become garbage at any moment.
        gc.freeze()
        gc.set_debug(gc.DEBUG_SAVEALL)
        try:
            assert site.ask(CONFIG_MAPS, "POST", bad).status == 422
            gc.collect(1)  # not a full collection, which sometimes also examines frozen objects
            left = [each.f_code.co_filename for each in gc.garbage if inspect.isframe(each)]
        finally:
            gc.set_debug(0)
            gc.garbage.clear()
            gc.unfreeze()
            gc.enable()
    assert not [name for name in left if "ctrlmgr" in name]
