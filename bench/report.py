"""The report format of every benchmark: one line per claim, with its ratio to a limit measured in the same run."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import NamedTuple, NoReturn


class Claim(NamedTuple):
    """A measured value and a named limit; `at_most` means that lower values are better (memory, latency)."""

    name: str
    value: float
    limit: float
    goal: float
    unit: str
    at_most: bool = False

    @property
    def ratio(self) -> float:
        """Return the ratio of the value to the limit."""
        return self.value / self.limit

    @property
    def holds(self) -> bool:
        """Return whether the claim's goal is met."""
        return self.ratio <= self.goal if self.at_most else self.ratio >= self.goal


def report(claims: Sequence[Claim], arguments: Sequence[str]) -> int:
    """Print the claims as lines `name value limit ratio goal`; return 1 if --check is given and a claim fails."""
    for claim in claims:
        sign = "<=" if claim.at_most else ">="
        verdict = "ok" if claim.holds else "MISSED"
        print(
            f"{claim.name:<48} {claim.value:>12,.0f} {claim.unit:<10} limit {claim.limit:>12,.0f} "
            f"ratio {claim.ratio:>6.2f}  goal {sign} {claim.goal:g}  {verdict}"
        )
    return 1 if "--check" in arguments and not all(claim.holds for claim in claims) else 0


def run(main: Callable[[Sequence[str]], int], text: str | None) -> NoReturn:
    """Run a benchmark as a program; `--help` only prints the docstring of its module."""
    arguments = sys.argv[1:]
    if not {"-h", "--help"}.isdisjoint(arguments):
        print(f"{(text or '').strip()}\n\n--check  exit with 1 if a claim is missed")
        sys.exit(0)
    sys.exit(main(arguments))
