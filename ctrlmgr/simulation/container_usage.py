"""The resource usage of simulated containers, described in phrases such as `cpu 120m + 30m*sin`.

Guarantees: a usage depends only on the time. Therefore every reader gets the same value for the same time. A resource
usage is never negative.

| term | amount at a moment |
|---|---|
| `120m`, `64Mi` | constant |
| `30m*sin` | a wave between -30m and 30m, with a period of 10 minutes |
| `30m*sin(1h)` | the same wave with another period |
"""

from __future__ import annotations

import math
import re
from typing import Final, NamedTuple

from ctrlmgr.api.quantity import parse

PERIOD: Final = 600.0
"""The default period of a wave, in seconds."""
_UNITS: Final = {"s": 1.0, "m": 60.0, "h": 3600.0}
_QUANTITY: Final = r"[0-9.]+(?:[KMGTPE]i|[numkMGTPE])?"
_TERM: Final = re.compile(rf"([+-]?) ?({_QUANTITY})(?: ?\* ?sin(?:\((\d+(?:\.\d+)?)(s|m|h)\))?( *))?")
_PHRASE: Final = re.compile(r"(cpu|memory):? (.+)")


class Term(NamedTuple):
    """One term of a resource usage: a constant or a wave."""

    amount: int
    """The amount of the term, in billionths of the resource's unit."""
    period: float = 0.0
    """The period of a wave in seconds; 0 means a constant."""

    def at(self, seconds: float) -> float:
        """Return the amount of the term at a given time."""
        return self.amount * math.sin(2 * math.pi * seconds / self.period) if self.period else self.amount


class Usage(NamedTuple):
    """The usage of one resource, as a function of time."""

    terms: tuple[Term, ...]

    def at(self, seconds: float) -> int:
        """Return the resource usage at a given time, in billionths."""
        return max(round(sum(term.at(seconds) for term in self.terms)), 0)


def read_usage(phrase: str) -> tuple[str, Usage] | None:
    """Return the resource and the usage that a phrase describes; None if the phrase is not about usage.

    Raises ValueError if the usage in the phrase is invalid.
    """
    match = _PHRASE.fullmatch(phrase)
    if match is None:
        return None
    text, terms, at = match[2].strip(), [], 0
    while at < len(text):
        term = _TERM.match(text, at)
        if term is None or (at and not term[1]):
            raise ValueError(f"{phrase!r} is not a valid resource usage; write for example `{match[1]} 120m + 30m*sin`")
        terms.append(_term(term))
        at = term.end()
        at += len(text[at:]) - len(text[at:].lstrip())
    return match[1], Usage(tuple(terms))


def _term(match: re.Match[str]) -> Term:
    amount = parse(match[2]) * (-1 if match[1] == "-" else 1)
    is_wave = match[5] is not None
    period = float(match[3]) * _UNITS[match[4]] if match[3] else PERIOD
    if is_wave and not period:
        raise ValueError("the period of a wave must be longer than 0s")
    return Term(amount, period if is_wave else 0.0)
