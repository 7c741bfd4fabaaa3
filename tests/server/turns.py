"""Checks the CPU time of single steps of an event loop during tests."""

from __future__ import annotations

import re

LONGEST_TURN = 0.5
"""Maximum CPU time of one step of an event loop, in seconds."""


def long_turns(log: str) -> list[str]:
    """Return the lines of a server's log that report a step which exceeded the maximum CPU time."""
    lines = [line for line in log.splitlines() if "event loop blocked" in line]
    return [line for line in lines if _seconds(line) > LONGEST_TURN]


def _seconds(line: str) -> float:
    found = re.search(r"cpu_seconds\W+([\d.]+)", line)
    assert found is not None, line
    return float(found[1])
