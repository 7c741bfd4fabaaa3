"""Output of checks that are run by hand: their progress, and the errors at the end."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def say(text: str) -> None:
    """Print a line at once, wherever the output goes to."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def verdict(wrong: Sequence[str]) -> int:
    """Print what was wrong, or that nothing was; return what the process is to end with."""
    for sentence in wrong:
        say(f"WRONG {sentence}")
    say(f"{len(wrong)} complaints" if wrong else "sound")
    return 1 if wrong else 0
