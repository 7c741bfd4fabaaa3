"""Compares our interpreter settings with CPython's defaults: an event loop's delay, garbage collection, page faults.

- `lateness`: an event loop has a timer every 2 ms, while another thread computes. The result is the median delay of the
  timer.
- `collector`: 200,000 objects stay in memory. The results are the total time of all collections, and the time of the
  longest one, during which all threads wait.
- `pages`: 300 responses of 3 MB are built and dropped, in pieces of 64 KiB. The result is the number of memory pages
  that the operating system gives to the process. This number of pages is compared with the number for a process that
  keeps 128 KiB of free memory, which is glibc's default with a fixed threshold for mapping.

Each measurement runs in its own process, alternating between `interpreter.tune()` and the defaults.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from statistics import median

from bench.report import Claim, report, run

ROUNDS = 5

LATENESS = """
import asyncio, threading
stop = threading.Event()
def busy():
    while not stop.is_set():
        sum(range(100))
async def late():
    loop = asyncio.get_running_loop()
    found = []
    for _ in range(500):
        due = loop.time() + 0.002
        await asyncio.sleep(0.002)
        found.append(loop.time() - due)
    return sorted(found)[250]
threading.Thread(target=busy, daemon=True).start()
print(asyncio.run(late()) * 1e6)
stop.set()
"""

COLLECTOR = """
import gc, time
taken, began = [], 0.0
def hear(phase, info):
    global began
    if phase == "start":
        began = time.perf_counter()
    else:
        taken.append(time.perf_counter() - began)
gc.callbacks.insert(0, hear)
log = [(revision, b"%050d" % revision, [revision]) for revision in range(200_000)]
print({what}(taken) * 1e6)
"""

PAGES = """
import resource
def answer():
    return [b"x" * 65_536 for _ in range(46)]
answer()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for turn in range(300):
    answer()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before + 1)
"""

OURS = "from ctrlmgr import interpreter\ninterpreter.tune()\n"
DEFAULTS = "from ctrlmgr import interpreter\n"
MAPPED = "import ctypes\nctypes.CDLL(None).mallopt(-3, 128 * 1024)\n"
"""M_MMAP_THRESHOLD alone."""


def measured(program: str) -> float:
    """Run `program` in its own process; return the number that it prints."""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return float(done.stdout)


def compared(name: str, program: str, goal: float, unit: str, others: str = DEFAULTS) -> Claim:
    """Return the claim that a program with our settings takes at most `goal` times as long as with those in `others`.

    The compared values are medians of alternating rounds.
    """
    turns = [(measured(OURS + program), measured(others + program)) for _ in range(ROUNDS)]
    ours, limit = (median(each) for each in zip(*turns, strict=True))
    return Claim(name, ours, limit, goal, unit, at_most=True)


def main(arguments: Sequence[str]) -> int:
    """Run all comparisons and report the results."""
    claims = [
        compared("lateness of a loop beside a busy thread, p50", LATENESS, 0.5, "us"),
        compared("time in the collector, 200,000 objects stay", COLLECTOR.format(what="sum"), 0.5, "us"),
        compared("longest collection, 200,000 objects stay", COLLECTOR.format(what="max"), 0.5, "us"),
        compared("pages fetched for 300 answers of 3 MB", PAGES, 0.5, "pages", MAPPED),
    ]
    return report(claims, arguments)


if __name__ == "__main__":
    run(main, __doc__)
