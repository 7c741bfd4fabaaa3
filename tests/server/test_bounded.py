"""Work with a deadline that ends it."""

from __future__ import annotations

import asyncio
import gc
import inspect
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from ctrlmgr.clock import SystemClock
from ctrlmgr.engine.patch import json_patch
from ctrlmgr.engine.writes.plan import LARGE
from ctrlmgr.errors import RequestTimeout
from ctrlmgr.schema import strict_json, yaml_document
from ctrlmgr.server.bounded import BoundedWork
from ctrlmgr.testing.clock import FakeClock
from tests.server.site import CONFIG_MAPS, make, running


def run(main: Callable[[BoundedWork], Coroutine[Any, Any, Any]], deadline: float = 10.0) -> Any:
    async def started() -> Any:
        work = BoundedWork(SystemClock(), deadline=deadline)
        work.start()
        try:
            return await main(work)
        finally:
            work.stop()

    return asyncio.run(started())


class Endless:
    """Work without an end, which says when it has been ended nevertheless."""

    def __init__(self) -> None:
        self.ended = threading.Event()
        self.count = 0

    def __call__(self) -> None:
        try:
            while True:
                try:
                    self.count += 1
                except Exception:  # a handler of errors must not hold up the end
                    self.count += 1
        finally:
            self.ended.set()


def test_work_is_done_elsewhere_and_what_it_raises_comes_back() -> None:
    async def main(work: BoundedWork) -> int:
        with pytest.raises(ZeroDivisionError):
            await work.run(lambda: 1 // 0)
        return await work.run(threading.get_ident)

    assert run(main) != threading.get_ident()


def test_work_that_does_not_end_is_ended_and_the_thread_goes_on() -> None:
    endless = [Endless() for _ in range(4)]

    async def main(work: BoundedWork) -> list[int]:
        told = await asyncio.gather(*[work.run(each) for each in endless], return_exceptions=True)
        assert all(isinstance(each, RequestTimeout) and each.code == 504 for each in told), told
        return [await work.run(lambda number=number: number) for number in range(8)]  # type: ignore[misc]  # binds the number

    assert run(main, deadline=0.05) == list(range(8))
    for each in endless:
        assert each.ended.wait(10)
        before = each.count
        assert each.count == before, "nothing is left that works"


def test_the_end_never_strikes_what_comes_next() -> None:
    """Work that ends just when its time is over is hit or missed, and what follows is not hit."""

    async def main(work: BoundedWork) -> int:
        done = 0
        for _ in range(200):
            ends_at = asyncio.get_running_loop().time() + 0.001

            def until(at: float = ends_at) -> int:
                while SystemClock().monotonic() < at:
                    pass
                return 1

            try:
                done += await work.run(until)
            except RequestTimeout:
                done += 1
            assert await work.run(lambda: 2) == 2
        return done

    assert run(main, deadline=0.001) == 200


TRACED = """
import asyncio, sys
from ctrlmgr.clock import SystemClock
from ctrlmgr.server.bounded import BoundedWork
from tests.server.test_bounded import Endless, run

async def main(work):
    await work.run(int)
    await asyncio.gather(work.run(Endless()), return_exceptions=True)
    await asyncio.gather(*[work.run(lambda: SystemClock().monotonic()) for _ in range(500)])

run(main, deadline=0.05)
sys.settrace(lambda *_: None)
print(int("7"), (lambda: "goes on")())
"""


def test_a_traced_program_goes_on_after_work_that_ended_and_that_was_ended() -> None:
    """CPython 3.11 loops for ever where an exception for a thread was taken back, as soon as it traces."""
    ended = subprocess.run([sys.executable, "-c", TRACED], capture_output=True, text=True, timeout=60, check=False)
    assert ended.stdout.splitlines()[-1] == "7 goes on", ended.stderr


def test_others_are_answered_while_a_large_body_is_worked_on() -> None:
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


@pytest.mark.parametrize(
    ("method", "path", "media_type"),
    [
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
    ],
)
def test_no_large_body_is_read_where_others_wait(
    method: str, path: str, media_type: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[str] = []

    def noting(decode: Callable[[bytes], Any]) -> Callable[[bytes], Any]:
        def noted(data: bytes) -> Any:
            if len(data) > LARGE:
                threads.append(threading.current_thread().name)
            return decode(data)

        return noted

    monkeypatch.setattr(strict_json, "decode_shallow", noting(strict_json.decode_shallow))
    monkeypatch.setattr(yaml_document, "_plain_json", noting(yaml_document._plain_json))
    with running(make()) as site:
        site.create("c", a="b")
        code = site.ask(path, method, LARGE_BODY, {"content-type": media_type}).status
        assert code != 415
    assert threads
    assert all(each.startswith("server worker") for each in threads)


@pytest.mark.parametrize("op", ["copy", "\\u0063opy"])
def test_a_short_patch_that_copies_much_is_not_applied_where_others_wait(
    op: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[str] = []

    def noting(document: Any, operations: Any) -> Any:
        threads.append(threading.current_thread().name)
        return json_patch(document, operations)

    monkeypatch.setattr("ctrlmgr.engine.writes.patching.json_patch", noting)
    steps = ",".join(f'{{"op":"{op}","from":"/data","path":"/data/a{number}"}}' for number in range(30))
    with running(make()) as site:
        site.create("c", a="b" * 1000)
        answer = site.ask(
            f"{CONFIG_MAPS}/c", "PATCH", f"[{steps}]".encode(), {"content-type": "application/json-patch+json"}
        )
        assert answer.status == 422
    assert threads
    assert all(each.startswith("server worker") for each in threads)


def _wait_for_the_collector() -> None:
    """Wait until it is on, as it is not while there is work, and shortly after."""
    ends_at = time.monotonic() + 10
    while not gc.isenabled():
        assert time.monotonic() < ends_at
        threading.Event().wait(0.01)


@pytest.mark.long_turns  # admission and validation of large objects still run on the event loop
@pytest.mark.parametrize("size", [10, 100_000])
def test_a_refusal_leaves_nothing_to_the_collector(size: int) -> None:
    """Frames that hold the error which they raised would keep the body until the collector comes by."""
    bad = {"metadata": {"name": "bad"}, "data": {"!": "x" * size}}
    with running(make()) as site:
        site.ask(CONFIG_MAPS, "POST", bad)
        _wait_for_the_collector()
        gc.collect()
        gc.disable()
        gc.freeze()  # What is there is not looked at: what earlier tests left may become garbage at any moment.
        gc.set_debug(gc.DEBUG_SAVEALL)
        try:
            assert site.ask(CONFIG_MAPS, "POST", bad).status == 422
            gc.collect(1)  # and not all, which now and then looks at what is frozen, too
            left = [each.f_code.co_filename for each in gc.garbage if inspect.isframe(each)]
        finally:
            gc.set_debug(0)
            gc.garbage.clear()
            gc.unfreeze()
            gc.enable()
    assert not [name for name in left if "ctrlmgr" in name]


def test_the_collector_is_off_while_there_is_work_and_shortly_after() -> None:
    async def main(work: BoundedWork) -> list[bool]:
        before = gc.isenabled()
        both = await asyncio.gather(work.run(gc.isenabled), work.run(gc.isenabled))
        after = gc.isenabled()
        await asyncio.to_thread(_wait_for_the_collector)
        return [before, *both, after]

    assert run(main) == [True, False, False, False]


def test_the_collector_is_on_again_when_the_server_has_stopped() -> None:
    async def main(work: BoundedWork) -> bool:
        await work.run(lambda: None)
        return gc.isenabled()

    assert not run(main)
    assert gc.isenabled()


def test_work_that_does_not_cease_leaves_the_collector_its_turn() -> None:
    looks = list[dict[str, int]]()

    def look(phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            looks.append(info)

    async def main() -> int:
        clock = FakeClock()
        work = BoundedWork(clock)
        work.start()
        gc.callbacks.append(look)
        try:
            await work.run(lambda: None)
            await work.run(lambda: None)
            before = len(looks)
            clock.step(11)
            await work.run(lambda: None)
            return len(looks) - before
        finally:
            gc.callbacks.remove(look)
            work.stop()

    assert asyncio.run(main()) == 1


def test_free_lists_are_emptied_after_the_last_work_too() -> None:
    emptied = asyncio.Queue[None]()

    def look(phase: str, info: dict[str, int]) -> None:
        if phase == "stop" and info["generation"] == 2:
            emptied.put_nowait(None)

    async def main(work: BoundedWork) -> None:
        gc.callbacks.append(look)
        try:
            for _ in range(2):  # the second so soon after the first that it has to wait
                await work.run(lambda: None)
                await asyncio.wait_for(emptied.get(), 30)
        finally:
            gc.callbacks.remove(look)

    run(main)
