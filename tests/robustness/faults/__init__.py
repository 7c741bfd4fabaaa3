"""Runs rounds with one fault each: real processes on a real database under load, then a fault, then the recovery.

`python -m tests.robustness.faults --rounds 100 --seed 1 --database postgresql` runs a hundred rounds. In each round, a
few `ctrlmgr serve` processes share a database, and writers, readers, watchers and informers send requests to these
processes (`tests.robustness`). At a random time, one fault begins (`injections`), and later ends. Then the script
checks the histories and the log (`judging`). The same seed repeats a round as far as its randomness comes from the
test.
"""

from __future__ import annotations

import random


def new_seed() -> int:
    """Return a random seed for a run without a given seed."""
    return random.SystemRandom().randrange(1 << 32)
