"""Prints the progress of checks that a user starts, and their errors at the end."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def say(text: str) -> None:
    """Print a line and flush it, also if the output is a pipe or a file."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def verdict(wrong: Sequence[str]) -> int:
    """Print the errors, or a line that there are no errors; return the exit code."""
    for sentence in wrong:
        say(f"WRONG {sentence}")
    say(f"{len(wrong)} complaints" if wrong else "sound")
    return 1 if wrong else 0
