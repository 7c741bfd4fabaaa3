"""A process that appends objects one by one and prints `NAME REVISION` after each acknowledgement.

With the argument `step`, the process waits for a line on its standard input before each append.
"""

from __future__ import annotations

import random
import sys

from ctrlmgr.clock import SystemClock
from ctrlmgr.eventlog import open_log
from ctrlmgr.testing.eventlog_contract import AUTHOR, add, thing


def main(url: str, prefix: str, count: int, *, step: bool) -> None:
    log = open_log(url, clock=SystemClock(), random=random.Random())
    for i in range(count):
        if step:
            sys.stdin.readline()
        event = log.append([add(thing(f"{prefix}-{i}"))], author=AUTHOR)[0]
        sys.stdout.write(f"{event.key.name} {event.revision}\n")
        sys.stdout.flush()
    log.close()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), step="step" in sys.argv)
