"""What runs by hand print: how they are getting on, and what was wrong in the end."""

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
