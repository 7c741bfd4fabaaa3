"""Parses lists of completion indexes of an indexed Job, such as `1,3-5,7`.

Source: Kubernetes' `pkg/apis/batch/validation/validation.go`, `validateIndexesFormat` and
`validateFailedIndexesNotOverlapCompleted`.
"""

from __future__ import annotations

import re

from ctrlmgr.golang.go_text import quote

_INTEGER = re.compile(r"[+-]?[0-9]{1,18}", re.ASCII)


def count_indexes(text: str, completions: int) -> int:
    """Return the number of indexes in `text`.

    Raises `ValueError` if the indexes do not increase, or if an index is not below `completions`.
    """
    total, last = 0, None
    for interval in text.split(",") if text else ():
        first, final = _read(interval, completions)
        if last is not None and last >= first:
            raise ValueError(_unordered(last, first))
        total, last = total + final - first + 1, final
    return total


def common_index(completed: str, failed: str, completions: int) -> int | None:
    """Return the first index that both lists contain; None if they have no common index.

    Malformed parts of the lists are skipped.
    """
    ours, theirs = _intervals(completed, completions), _intervals(failed, completions)
    here = there = 0
    while here < len(ours) and there < len(theirs):
        (first, final), (low, high) = ours[here], theirs[there]
        if first <= high and low <= final:
            return max(first, low)
        if first <= low:
            here += 1
        else:
            there += 1
    return None


def _intervals(text: str, completions: int) -> list[tuple[int, int]]:
    found = []
    for interval in text.split(",") if text else ():
        try:
            found.append(_read(interval, completions))
        except ValueError:
            continue
    return found


def _read(interval: str, completions: int) -> tuple[int, int]:
    ends = interval.split("-")
    if len(ends) > 2:
        problem = "violates the requirement that an index interval can have at most two parts separated by '-'"
        raise ValueError(f"the fragment {quote(interval)} {problem}")
    first, final = _index(ends[0], completions), _index(ends[-1], completions)
    if len(ends) == 2 and first >= final:
        raise ValueError(_unordered(first, final))
    return first, final


def _index(text: str, completions: int) -> int:
    if not _INTEGER.fullmatch(text):
        raise ValueError(f"cannot convert string to integer for index: {quote(text)}")
    if int(text) >= completions:
        raise ValueError(f"too large index: {quote(text)}")
    return int(text)


def _unordered(previous: int, current: int) -> str:
    return f"non-increasing order, previous: {previous}, current: {current}"
