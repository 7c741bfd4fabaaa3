"""Rounds with one fault each: real processes on a real database under load, then a fault, then recovery.

`python -m tests.robustness.faults --rounds 100 --seed 1 --database postgresql` runs rounds. In each round, a few
`ctrlmgr serve` processes share a database, and writers, readers, watchers and informers use them (`tests.robustness`).
At a random moment, one fault begins (`injections`) and ends. Then the histories and the log are checked (`judging`).
The seed of a round repeats it, as far as the randomness is that of the test.
"""

from __future__ import annotations

import random


def new_seed() -> int:
    """Return a random seed for a run without a given seed."""
    return random.SystemRandom().randrange(1 << 32)
