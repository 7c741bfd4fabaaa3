"""Regular expressions as Go's `regexp` has them, for patterns that strangers write into schemas.

Guarantees:
- A pattern is accepted or refused as Go accepts or refuses it, with Go's message, and matches what Go's would match.
- A search takes time linear in the text: there is no backtracking. A pattern that is too much work on a text raises
  `TooMuchWork`: after the characters that states are known for, one call makes states for some 20 ms at most.

`compiled(pattern)` returns a `Regexp`, whose `search(text)` says whether the pattern is found and `spans(text)` where;
it raises `PatternError`. Source: Go's `regexp/syntax` and the RE2 syntax page.
"""

from __future__ import annotations

from ctrlmgr.caches.memoized import memoized
from ctrlmgr.regexp.automaton import Regexp
from ctrlmgr.regexp.syntax import PatternError, parse
from ctrlmgr.work_budget import TooMuchWork

__all__ = ["PatternError", "Regexp", "TooMuchWork", "compiled"]


@memoized(entries=1024, longest=1024)
def compiled(pattern: str) -> Regexp:
    """Return the automaton of a pattern; raises PatternError in Go's words."""
    return Regexp(parse(pattern))
