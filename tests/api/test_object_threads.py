"""Tests that many threads can read an object at the same time.

A failure would crash the process, so the test runs in a separate process.
"""

from __future__ import annotations

import subprocess
import sys

_READERS = """
import sys, threading
import msgspec
from ctrlmgr.api.object import Object

sys.setswitchinterval(1e-6)
obj = Object.from_dict({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "a"}, "data": {"a": {"a": None}}})

def nested(number):
    inner = msgspec.defstruct(f"Inner{number}", [("a", str | None, None)])
    for depth in range(20):
        inner = msgspec.defstruct(f"Level{number}_{depth}", [("a", inner | None, None), ("b", list[inner], ())])
    return msgspec.defstruct(f"View{number}", [("data", inner | None, None)])

for number in range(100):
    view, together, read = nested(number), threading.Barrier(4), []
    def look():
        together.wait()
        read.append(obj.view(view))
    readers = [threading.Thread(target=look) for _ in range(4)]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
    assert len(read) == 4, "a reader failed"
"""


def test_several_threads_can_read_a_kind_for_the_first_time() -> None:
    done = subprocess.run([sys.executable, "-c", _READERS], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done
