"""Faults one by one: real processes on a real database under load, something befalls them, and then all is well again.

`python -m tests.robustness.faults --rounds 100 --seed 1 --database postgresql` plays rounds. In each a few `ctrlmgr
serve` processes share a database; writers, readers, watchers and informers use them (`tests.robustness`); at a random
moment one fault comes (`injections`) and goes again. What must be true then is judged from the histories and from the
log (`judging`). A round is repeated by its own seed, as far as chance is ours.
"""

from __future__ import annotations

import random


def new_seed() -> int:
    """Return a seed for a run that was given none."""
    return random.SystemRandom().randrange(1 << 32)
