"""Compares our regular expressions with RE2 (`pip install google-re2`), with common and with hostile patterns.

- `compile` and `match`: patterns of Kubernetes' built-in validation, and of common CustomResourceDefinitions.
- `hostile`: patterns with large automata, on strings up to the maximum size of a request body. Our implementation
  raises `TooMuchWork` after 60,000 steps; RE2 limits its memory, but not its time.
- `differs`: patterns that Go and RE2 treat differently; our implementation follows Go.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from bench.decisions.comparison import alternative, microseconds, once, row
from ctrlmgr.regexp import compiled
from ctrlmgr.regexp.automaton import Regexp
from ctrlmgr.regexp.syntax import parse

USUAL = [
    (r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "web-7c6dfd9664"),
    (r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$", "shop.example.com"),
    (r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$", "1h30m"),
    (r"^(\d|[1-9]\d|1\d\d|2[0-4]\d|25[0-5])(\.(\d|[1-9]\d|1\d\d|2[0-4]\d|25[0-5])){3}$", "192.168.17.254"),
    (r"^https?://[^/\s]+(/.*)?$", "https://grafana.monitoring.svc/api/v1/query"),
    (r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?[0-9]+))?$", "512Mi"),
]

_RANDOM = random.Random(1)
LETTERS = "".join(_RANDOM.choice("ab") for _ in range(1_000_000))
HOSTILE = [
    ("a far back, 1 MB", r"a[ab]{500}c", LETTERS),
    ("repeats in repeats, 1 MB", r"((a?b?){30}){30}c$", LETTERS),
    ("many choices, 1 MB", "(" + "|".join(f"(a|b){{{n}}}c" for n in range(1, 40)) + ")$", LETTERS),
]

DIFFERS = [r"(?P<n", "a**", r"\pN", r"\C", r"(?<name>a)", "[[:word:]]", r"\Qa", "a{1001}", r"(\pL{1,40}){1,20}"]


def verdict(call: Callable[..., object], *arguments: object) -> str:
    """Return "accepted", or the first line of the error for a refused pattern."""
    try:
        call(*arguments)
    except Exception as error:  # the libraries raise errors of different classes
        return str(error).splitlines()[0]
    return "accepted"


def main() -> None:
    """Print all comparisons."""
    re2 = alternative("re2", "google-re2")
    options = re2.Options()
    options.log_errors = False
    for pattern, text in USUAL:
        theirs, ours = re2.compile(pattern, options), compiled(pattern)
        assert ours.search(text)
        assert theirs.search(text)
        row(f"match {pattern[:36]}", microseconds(ours.search, text), microseconds(theirs.search, text))
    for pattern, _ in USUAL[:4]:
        anew = microseconds(lambda source: Regexp(parse(source)).search(""), pattern)
        row(f"compile {pattern[:34]}", anew, microseconds(re2._re2.RE2, pattern.encode(), options))
    for name, pattern, text in HOSTILE:
        theirs = re2.compile(pattern, options)
        spent, end = once(compiled(pattern).search, text)
        row(f"hostile: {name}", spent, once(theirs.search, text)[0], end)
    for pattern in DIFFERS:
        said = verdict(compiled, pattern), verdict(re2.compile, pattern, options)
        print(f"{'same' if said[0] == said[1] else 'differs'}  {pattern:<16} ours: {said[0]:<60} RE2: {said[1]}")


if __name__ == "__main__":
    main()
