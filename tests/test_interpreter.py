"""Tests of how the interpreter is configured; they run in separate processes, because a process configures its
interpreter only once.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

_FULL_COLLECTIONS = """
import gc, weakref
from ctrlmgr import interpreter

class Ring:
    def __init__(self):
        self.own = self

interpreter.tune()
interpreter.tune()
kept = Ring()
gc.collect()
assert gc.get_freeze_count() > 1000, "what has survived is out of sight"
dropped = weakref.ref(kept)
del kept
collections = 1
while dropped() is not None:
    gc.collect()
    collections += 1
print(collections)
"""


def test_late_garbage_is_collected_by_one_of_sixteen_full_collections() -> None:
    command = [sys.executable, "-c", _FULL_COLLECTIONS]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.stderr) == ("16\n", "")


_PAUSED = """
import gc
from ctrlmgr import interpreter

interpreter.tune()
gc.collect()
frozen = gc.get_freeze_count()
with interpreter.collector_paused():
    kept = [[] for _ in range(int({many}))]
print(gc.get_freeze_count() - frozen > 10_000, gc.get_count()[0] < 5_000)
"""


@pytest.mark.parametrize(("many", "is_frozen"), [("50_000", "True True"), ("1_000", "False True")])
def test_objects_allocated_while_paused_are_not_traversed(many: str, is_frozen: str) -> None:
    command = [sys.executable, "-c", _PAUSED.replace("{many}", many)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.stderr) == (f"{is_frozen}\n", "")


CROWDED = """
import gc, threading, time
from ctrlmgr.interpreter import frames

gc.callbacks.append(lambda phase, info: time.sleep(0))  # lets another thread run in the middle of a collection
gc.set_threshold(1)

def start_threads():
    while True:
        thread = threading.Thread(target=int)
        thread.start()
        thread.join()

threading.Thread(target=start_threads, daemon=True).start()
for _ in range(500):
    assert threading.get_ident() in frames()
"""


def test_frames_are_read_while_threads_start_and_objects_are_collected() -> None:
    """The test runs in a separate process, because two locks that wait for each other would block the test process."""
    subprocess.run([sys.executable, "-c", CROWDED], check=True, timeout=60)
