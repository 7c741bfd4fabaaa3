"""Regular expressions with the semantics of Go's `regexp`, for patterns that clients write into schemas.

Guarantees:
- A pattern is accepted or refused as in Go, with Go's error message, and matches the same strings as in Go.
- A search never backtracks, so it takes time linear in the length of the string. A search that needs too much work
  raises `TooMuchWork`; one call takes at most about 20 ms for the creation of automaton states.

`compiled(pattern)` returns a `Regexp`, or raises `PatternError` if the pattern is invalid. `search(text)` returns
whether the pattern matches, and `spans(text)` returns the positions of the matches. Source: Go's `regexp/syntax` and
the RE2 syntax page.
"""

from __future__ import annotations

from ctrlmgr.caches.memoized import memoized
from ctrlmgr.regexp.automaton import Regexp
from ctrlmgr.regexp.syntax import PatternError, parse
from ctrlmgr.work_budget import TooMuchWork

__all__ = ["PatternError", "Regexp", "TooMuchWork", "compiled"]


@memoized(entries=1024, longest=1024)
def compiled(pattern: str) -> Regexp:
    """Return the automaton of a pattern; raises PatternError with Go's message if the pattern is invalid."""
    return Regexp(parse(pattern))
