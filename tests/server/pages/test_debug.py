from __future__ import annotations

import threading

from ctrlmgr.server.pages.debug import profile
from ctrlmgr.testing import FakeClock


def busy_for(stop: threading.Event) -> None:
    while not stop.is_set():
        sum(range(100))


def test_a_profile_says_where_threads_are() -> None:
    clock, stop = FakeClock(patience=0.05), threading.Event()
    worker = threading.Thread(target=busy_for, args=(stop,), name="busy-one")
    worker.start()
    lines: list[str] = []
    profiler = threading.Thread(target=lambda: lines.extend(profile(1.0, clock).splitlines()))
    profiler.start()
    try:
        for _ in range(4):
            clock.wait_for_waiters(1)
            clock.step(0.3)
        profiler.join(10)
    finally:
        stop.set()
        worker.join()
    found = [line for line in lines if line.startswith("busy-one;")]
    assert found
    assert all("busy_for" in line for line in found)
    assert sum(int(line.rpartition(" ")[2]) for line in found) >= 3
    assert not [line for line in lines if "test_a_profile" not in line and "profile:" in line]
