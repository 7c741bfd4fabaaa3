"""Prints the progress of checks that are started by hand, and their errors at the end."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def say(text: str) -> None:
    """Print a line at once, also into a pipe or file."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def verdict(wrong: Sequence[str]) -> int:
    """Print the errors, or that there are none; return the exit code."""
    for sentence in wrong:
        say(f"WRONG {sentence}")
    say(f"{len(wrong)} complaints" if wrong else "sound")
    return 1 if wrong else 0
